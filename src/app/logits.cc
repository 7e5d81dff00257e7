// sluice logits: writes the logits of every prompt position.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/commands.h"
#include "app/report.h"
#include "app/runtime.h"
#include "base/error.h"
#include "weights/safetensors_writer.h"

namespace sluice {
namespace {

struct LogitsOptions {
  ModelOptions model;
  PromptOptions prompt;
  std::string out;
  bool json = false;
};

bool parse(LogitsOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(app, "logits", "[flags] (--prompt TEXT|--file FILE|--tokens IDS) --out FILE",
           "Computes the logits of every position of a prompt and writes them to a safetensors "
           "file as `logits`, f32, (positions, vocabulary). Row i predicts token i + 1. No chat "
           "template is used.",
           {"sluice logits --tokens 1,2,3 --out logits.safetensors",
            "sluice logits --prompt \"The sky is\" --compute f32 --out logits.safetensors"});
  add_prompt_flags(app, o.prompt, /*positional=*/false);
  add_text(app, "-o,--out", "FILE", o.out, "the file to write")->group("Output")->required();
  add_model_flags(app, o.model);
  add_switch(app, "--json", o.json, "print one object: out, shape, tokens")->group("Output");
  return parse_flags(app, argc, argv);
}

std::vector<Token> prompt_tokens(Runtime& runtime, const PromptOptions& prompt) {
  if (prompt.has_tokens) return parse_integers(prompt.tokens, "--tokens");
  if (!prompt.has_text && !prompt.has_file) {
    throw UsageError("--prompt: expected --prompt, --file or --tokens");
  }
  return runtime.tokenizer().encode(prompt.has_text ? prompt.text : read_text(prompt.file));
}

/// (tokens, vocab)
std::vector<float> compute_logits(Runtime& runtime, std::vector<Token> tokens) {
  std::vector<float> logits;
  logits.reserve(tokens.size() * size_t(runtime.model().vocab));
  std::string error;
  Request request;
  request.prompt = std::move(tokens);
  request.use_prefix_cache = false;
  request.want_logits = true;
  request.sink = [&](const TokenEvent& event) {
    logits.insert(logits.end(), event.logits.begin(), event.logits.end());
    error += event.error;
    return true;
  };
  const RequestId id = runtime.engine().submit(std::move(request));
  while (runtime.step()) {
    if (interrupted()) runtime.engine().cancel(id);
  }
  if (!error.empty()) throw Error(ErrorCode::kInvalidInput, "{}", error);
  return logits;
}

}  // namespace

int logits_command(int argc, char** argv) {
  LogitsOptions o;
  if (!parse(o, argc, argv)) return kOk;
  Runtime runtime(o.model);
  const std::vector<Token> tokens = prompt_tokens(runtime, o.prompt);
  runtime.start(int64_t(tokens.size()), 1);
  catch_interrupts();
  const std::vector<float> logits = compute_logits(runtime, tokens);
  if (interrupted()) return kInterrupted;
  const std::vector<int64_t> shape = {int64_t(tokens.size()), runtime.model().vocab};
  SafetensorsWriter writer;
  writer.add("logits", shape, std::span<const float>(logits));
  writer.write(o.out);
  if (o.json) {
    print_json(Json{{"out", o.out}, {"shape", shape}, {"tokens", tokens}});
  } else if (!o.model.quiet) {
    fmt::print("{}: logits ({}, {})\n", o.out, shape[0], shape[1]);
  }
  return kOk;
}

}  // namespace sluice
