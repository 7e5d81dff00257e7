// sluice run: answers one prompt.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "app/answer.h"
#include "app/commands.h"
#include "app/report.h"
#include "base/error.h"

namespace sluice {
namespace {

struct RunOptions {
  RunOptions() { answer.sampling.temperature = 0; }

  ModelOptions model;
  AnswerOptions answer;
  PromptOptions prompt;
  std::string system;
  bool raw = false, json = false;
};

bool parse(RunOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(app, "run", "[flags] [PROMPT]",
           "Answers one prompt: streams the text to standard output, then prints on standard error "
           "how many tokens there were, how fast, and where the time went: kernels (compute), "
           "joining threads (sync), moving frames between stages (wire), waiting (idle).\n"
           "The prompt is put into the model's chat template; --raw continues it as plain text. By "
           "default the most likely token is taken each time (--temperature 0). Ctrl-C ends the "
           "answer and prints what there is.",
           {"sluice run \"Why is the sky blue?\" --stages 3",
            "sluice run --raw \"Once upon a time\" --temperature 0.8 --seed 7 -n 100",
            "sluice run --model folder --tokens 1,2,3 --ignore-eos -n 16 --json",
            "cat notes.txt | sluice run --system \"Summarise the text.\""});
  add_prompt_flags(app, o.prompt, /*positional=*/true);
  add_text(app, "--system", "TEXT", o.system, "a system message before the prompt")
      ->group("Prompt");
  add_switch(app, "--raw", o.raw, "no chat template")->group("Prompt");
  add_answer_flags(app, o.answer);
  add_model_flags(app, o.model);
  add_switch(app, "--json", o.json,
             "print one object: tokens, text, prompt_tokens, finish_reason, timings, ...")
      ->group("Output");
  return parse_flags(app, argc, argv);
}

std::vector<Token> prompt_tokens(Runtime& runtime, const RunOptions& o) {
  if (o.prompt.has_tokens) return parse_integers(o.prompt.tokens, "--tokens");
  if (!o.prompt.has_text && !o.prompt.has_file && isatty(STDIN_FILENO) != 0) {
    throw UsageError("PROMPT: expected a text, --file or --tokens");
  }
  const std::string text =
      o.prompt.has_text ? o.prompt.text : read_text(o.prompt.has_file ? o.prompt.file : "-");
  if (o.raw) return runtime.tokenizer().encode(text);
  if (runtime.chat_template() == nullptr) {
    if (!o.system.empty()) {
      throw Error(ErrorCode::kNotFound, "{}: --system: expected a chat template, found none",
                  runtime.checkpoint().path().string());
    }
    if (!o.model.quiet) print_notice("the model has no chat template; the prompt is continued");
    return runtime.tokenizer().encode(text);
  }
  OrderedJson messages = OrderedJson::array();
  if (!o.system.empty()) messages.push_back({{"role", "system"}, {"content", o.system}});
  messages.push_back({{"role", "user"}, {"content", text}});
  return runtime.chat_tokens(messages);
}

}  // namespace

int run_command(int argc, char** argv) {
  RunOptions o;
  if (!parse(o, argc, argv)) return kOk;
  Runtime runtime(o.model);
  std::vector<Token> prompt = prompt_tokens(runtime, o);
  Request request = make_request(runtime, std::move(prompt), o.answer);
  runtime.start(int64_t(request.prompt.size()) + request.max_tokens, 1);
  catch_interrupts();
  const Answer result =
      answer(runtime, std::move(request), o.answer.stop, [&](std::string_view text) {
        if (o.json) return;
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
      });
  if (o.json) {
    print_json(answer_to_json(runtime, result));
  } else {
    if (!result.text.ends_with('\n')) std::fputc('\n', stdout);
    std::fflush(stdout);
    if (!o.model.quiet) fmt::print(stderr, "\n{}", answer_table(runtime, result));
  }
  return result.finish == FinishReason::kCancelled ? kInterrupted : kOk;
}

}  // namespace sluice
