#include "app/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <fstream>
#include <iostream>
#include <limits>
#include <sstream>

#include "base/error.h"

namespace sluice {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();

/// "17=-100" -> (17, -100).
std::pair<Token, float> parse_bias(const std::string& text) {
  const char* end = text.data() + text.size();
  Token token = -1;
  float bias = 0;
  const auto [equals, token_error] = std::from_chars(text.data(), end, token);
  if (token_error == std::errc() && token >= 0 && equals != end && *equals == '=') {
    const auto [rest, bias_error] = std::from_chars(equals + 1, end, bias);
    if (bias_error == std::errc() && rest == end) return {token, bias};
  }
  throw UsageError(fmt::format("--logit-bias: expected TOKEN=X like 17=-100, got \"{}\"", text));
}

void add_penalty_flags(CLI::App& app, SamplingParams& s) {
  add_number(app, "--repetition-penalty", s.repetition_penalty, 0.01f, 100,
             "divides the logits of all tokens seen so far (1: off)");
  add_number(app, "--presence-penalty", s.presence_penalty, -100, 100,
             "subtracted from the logits of generated tokens, once");
  add_number(app, "--frequency-penalty", s.frequency_penalty, -100, 100,
             "subtracted from the logits of generated tokens, per occurrence");
  app.add_option_function<std::vector<std::string>>(
         "--logit-bias",
         [&s](const std::vector<std::string>& all) {
           for (const std::string& text : all) s.logit_bias.push_back(parse_bias(text));
         },
         "added to a token's logit; may be repeated")
      ->type_name("TOKEN=X")
      ->allow_extra_args(false);
}

}  // namespace

void add_model_flag(CLI::App& app, std::string& model) {
  add_text(app, "-m,--model", "PATH", model,
           "a .gguf file (of a split set the first part), or a folder with config.json and "
           "*.safetensors (default: $SLUICE_MODEL, else the model of `make model`)")
      ->group("Model");
}

void add_model_flags(CLI::App& app, ModelOptions& o) {
  add_model_flag(app, o.model);
  const char* const group = "Placement and speed (none of these changes a token)";
  CLI::Option* stages = add_integer(app, "--stages", o.n_stages, 1, 1024,
                                    "cut the model into N stages of about the same cost");
  stages->group(group);
  add_text(app, "--plan", "FILE", o.plan, "which blocks are on which stage and cores (JSON)")
      ->group(group)
      ->excludes(stages);
  add_integer(app, "-t,--threads", o.n_threads, 1, 1024,
              "threads in all (default: what the system allows)")
      ->group(group);
  add_switch(app, "--split-cores", o.split_cores,
             "each stage has its own share of the threads, so that several users keep all stages "
             "busy; otherwise the stages take turns on all threads")
      ->group(group);
  add_integer(app, "--chunk", o.chunk, 1, 1 << 16,
              "most rows computed in one go; long prompts are cut into such chunks (default 512)")
      ->group(group);
  add_choice(app, "--speculate", o.speculate, {"off", "ngram"},
             fmt::format("ngram: guess tokens from the text so far, verify them exactly (default "
                         "{})",
                         o.speculate))
      ->group(group);
  add_integer(app, "--cache-tokens", o.cache_tokens, 1, kMaxInt,
              "tokens the cache holds, of all users together (default: what is needed, at least "
              "the smaller of the model's context and 8192)")
      ->group(group);
  add_integer(app, "--max-users", o.max_users, 1, 4096, "requests served at once (default 8)")
      ->group(group);
  add_choice(app, "--compute", o.compute, {"f32", "i8"},
             "i8 (default): 8-bit activations for quantised weights; f32: exact activations and "
             "an f32 cache")
      ->group("Precision");
  add_choice(app, "--cache", o.cache, {"f16", "f32"},
             "keys and values (default f16; f32 with --compute f32)")
      ->group("Precision");
  add_switch(app, "-q,--quiet", o.quiet, "no notices and no table on standard error")
      ->group("Output");
}

void add_answer_flags(CLI::App& app, AnswerOptions& o) {
  SamplingParams& s = o.sampling;
  const std::string previous = app.option_defaults()->get_group();
  app.option_defaults()->group("Answer");
  add_integer(app, "-n,--max-tokens", o.max_tokens, 0, kMaxInt,
              fmt::format("most tokens to generate (default {})", o.max_tokens));
  add_integer(app, "--min-tokens", o.min_tokens, 0, kMaxInt,
              "end tokens are not drawn before so many tokens");
  add_switch(app, "--ignore-eos", o.ignore_end, "end tokens are ordinary tokens");
  app.add_option("--stop", o.stop, "end the answer before this text; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  app.option_defaults()->group("Sampling");
  const std::string own = o.own_sampling ? "the model's own, else " : "";
  add_number(app, "--temperature", s.temperature, 0, 100,
             fmt::format("0: always the most likely token (default {}{})", own, s.temperature));
  add_seed(app, "--seed", s.seed, "the same seed gives the same answer (default 0)");
  add_integer(app, "--top-k", s.top_k, 0, kMaxInt, "draw from the N most likely tokens (0: all)");
  add_number(app, "--top-p", s.top_p, 0, 1,
             fmt::format("draw from the fewest with this share (default {}{})", own, s.top_p));
  add_number(app, "--min-p", s.min_p, 0, 1, "drop tokens below this share of the most likely one");
  add_number(app, "--typical-p", s.typical_p, 0, 1,
             "draw from the most typical with this share (1: off)");
  add_penalty_flags(app, s);
  add_integer(app, "--logprobs", s.n_top_logprobs, 0, 1000,
              "report log-probabilities of each token and of the N most likely ones (with --json)");
  app.option_defaults()->group(previous);
}

void add_prompt_flags(CLI::App& app, PromptOptions& o, bool positional) {
  const auto add = [&](const char* name, const char* value_name, std::string& value, bool& given,
                       const char* help) {
    return app
        .add_option_function<std::string>(
            name,
            [&value, &given](const std::string& text) {
              value = text;
              given = true;
            },
            help)
        ->type_name(value_name)
        ->group("Prompt");
  };
  CLI::Option* text = positional
                          ? add("PROMPT", "", o.text, o.has_text, "the text (default: from a pipe)")
                          : add("--prompt", "TEXT", o.text, o.has_text, "the text");
  CLI::Option* file =
      add("-f,--file", "FILE", o.file, o.has_file, "read the text from FILE; -: standard input");
  CLI::Option* tokens =
      add("--tokens", "IDS", o.tokens, o.has_tokens, "token ids like 1,2,3 instead of a text");
  text->excludes(file)->excludes(tokens);
  file->excludes(tokens);
}

std::string read_text(const std::filesystem::path& path) {
  constexpr size_t kMostBytes = size_t{1} << 30;
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) throw Error(ErrorCode::kNotFound, "{}: cannot be read", path.string());
    if (std::filesystem::is_directory(path)) {
      throw Error(ErrorCode::kIo, "{}: expected a file, got a directory", path.string());
    }
  }
  std::istream& in = path == "-" ? std::cin : file;
  std::string text;
  char part[1 << 16];
  do {
    in.read(part, sizeof part);
    if (text.size() + size_t(in.gcount()) > kMostBytes) {
      throw Error(ErrorCode::kResource, "{}: expected at most {} bytes", path.string(), kMostBytes);
    }
    text.append(part, size_t(in.gcount()));
  } while (in);
  if (in.bad()) throw Error(ErrorCode::kIo, "{}: cannot be read", path.string());
  return text;
}

}  // namespace sluice
