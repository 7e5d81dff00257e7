// sluice perplexity: how well a model predicts a text.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "app/commands.h"
#include "app/report.h"
#include "app/runtime.h"
#include "base/error.h"

namespace sluice {
namespace {

struct PerplexityOptions {
  ModelOptions model;
  std::string file;
  int context = 512;
  int max_windows = 0;
  bool json = false;
};

struct Score {
  double sum = 0;  // of the negative log-probabilities
  int64_t n_tokens = 0;
  int n_windows = 0;
  std::string error;

  double mean() const { return n_tokens > 0 ? sum / double(n_tokens) : 0; }
};

bool parse(PerplexityOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(app, "perplexity", "[flags] --file FILE",
           "Cuts a text into windows of N tokens and scores the second half of each, whose tokens "
           "all see at least half a window of context: perplexity = exp(mean of -log p). A rest "
           "shorter than a window is left out. If the model begins texts with a special token, "
           "each window does so, too. The same definition as llama.cpp's perplexity program.",
           {"sluice perplexity --file wiki.txt --context 512",
            "sluice perplexity --file wiki.txt --compute f32 --json"});
  add_text(app, "-f,--file", "FILE", o.file, "the text; -: standard input")
      ->group("Text")
      ->required();
  add_integer(app, "-c,--context", o.context, 4, 1 << 24, "tokens per window (default 512)")
      ->group("Text");
  add_integer(app, "--windows", o.max_windows, 1, 1 << 24, "at most N windows (default: all)")
      ->group("Text");
  add_model_flags(app, o.model);
  add_switch(app, "--json", o.json, "print one object: perplexity, tokens, windows, context, nll")
      ->group("Output");
  return parse_flags(app, argc, argv);
}

/// Windows of `n` tokens; the first token of each is BOS if the tokenizer begins texts with it.
std::vector<std::vector<Token>> make_windows(const Tokenizer& tokenizer, const std::string& text,
                                             size_t n, const std::string& name) {
  const std::vector<Token> tokens = tokenizer.encode(text, /*add_special=*/true,
                                                     /*parse_special=*/false);
  if (tokens.size() < n) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected at least {} tokens (one window), got {}",
                name, n, tokens.size());
  }
  const bool begins = tokenizer.bos() && tokens.front() == *tokenizer.bos();
  std::vector<std::vector<Token>> windows;
  for (size_t first = 0; first + n <= tokens.size(); first += n) {
    windows.emplace_back(tokens.begin() + std::ptrdiff_t(first),
                         tokens.begin() + std::ptrdiff_t(first + n));
    if (begins) windows.back().front() = *tokenizer.bos();
  }
  return windows;
}

void submit(Runtime& runtime, std::vector<Token> window, Score& score) {
  const int first_scored = int(window.size()) / 2 + 1;
  Request request;
  request.prompt = std::move(window);
  request.use_prefix_cache = false;
  request.score_from = first_scored;
  request.sink = [&score](const TokenEvent& event) {
    for (const float logprob : event.prompt_logprobs) score.sum -= logprob;
    score.n_tokens += int64_t(event.prompt_logprobs.size());
    if (event.finish == FinishReason::kLength) ++score.n_windows;
    score.error += event.error;
    return true;
  };
  runtime.engine().submit(std::move(request));
}

}  // namespace

int perplexity_command(int argc, char** argv) {
  PerplexityOptions o;
  if (!parse(o, argc, argv)) return kOk;
  Runtime runtime(o.model);
  std::vector<std::vector<Token>> windows =
      make_windows(runtime.tokenizer(), read_text(o.file), size_t(o.context), o.file);
  if (o.max_windows > 0 && windows.size() > size_t(o.max_windows)) {
    windows.resize(size_t(o.max_windows));
  }
  const int n_users = std::min(o.model.max_users, int(windows.size()));
  runtime.start(int64_t(n_users) * o.context, n_users);
  catch_interrupts();
  Score score;
  const double start = now_us();
  for (const std::vector<Token>& window : windows) submit(runtime, window, score);
  {
    Progress progress("perplexity", o.model.quiet || o.json);
    while (!interrupted() && score.error.empty() && runtime.step()) {
      progress.update(double(score.n_windows) / double(windows.size()),
                      fmt::format("{:.4f}", std::exp(score.mean())));
    }
  }
  if (!score.error.empty()) throw Error(ErrorCode::kInvalidInput, "{}: {}", o.file, score.error);
  const double seconds = (now_us() - start) / 1e6;
  const double perplexity = std::exp(score.mean());
  if (o.json) {
    print_json(Json{{"perplexity", perplexity},
                    {"tokens", score.n_tokens},
                    {"windows", score.n_windows},
                    {"context", o.context},
                    {"nll", score.mean()},
                    {"tok_s", rounded(double(score.n_windows) * o.context / seconds)}});
  } else {
    fmt::print("perplexity {:.4f}  ({} tokens scored in {} windows of {})\n", perplexity,
               score.n_tokens, score.n_windows, o.context);
  }
  return interrupted() ? kInterrupted : kOk;
}

}  // namespace sluice
