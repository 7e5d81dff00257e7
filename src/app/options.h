// Flags that several commands share.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/cli.h"
#include "engine/options.h"
#include "engine/request.h"

namespace sluice {

/// Which model, and how it runs.
struct ModelOptions {
  std::string model;  // empty: $SLUICE_MODEL, else the default model
  std::string plan;   // a file; empty: n_stages stages of about the same cost
  int n_stages = 1;
  int n_threads = 0;         // 0: as many as the machine lets this process use
  bool split_cores = false;  // every stage has threads of its own
  int chunk = 512;
  std::string compute = "i8", cache;  // cache empty: f16, or f32 with compute f32
  std::string speculate = "ngram";
  int cache_tokens = 0;  // 0: what the command needs
  int max_users = 8;
  bool quiet = false;

  bool i8() const { return compute == "i8"; }
  bool cache_f16() const { return cache.empty() ? i8() : cache == "f16"; }
  Speculation speculation() const {
    return speculate == "ngram" ? Speculation::kNgram : Speculation::kOff;
  }
};

/// --model alone, for commands that only look at it.
void add_model_flag(CLI::App& app, std::string& model);
void add_model_flags(CLI::App& app, ModelOptions& options);

/// How an answer is drawn, and when it ends.
struct AnswerOptions {
  SamplingParams sampling;
  int max_tokens = 256;
  int min_tokens = 0;
  bool ignore_end = false;
  std::vector<std::string> stop;
  bool own_sampling = false;  // the model's own go before the defaults (app/own_sampling.h)
};

/// The defaults are those in `options` at the time of the call, and the help says them.
void add_answer_flags(CLI::App& app, AnswerOptions& options);

/// A text or tokens.
struct PromptOptions {
  std::string text, file, tokens;
  bool has_text = false, has_file = false, has_tokens = false;
};

void add_prompt_flags(CLI::App& app, PromptOptions& options, bool positional);

/// The whole of `path`; "-" reads standard input. Throws Error.
std::string read_text(const std::filesystem::path& path);

}  // namespace sluice
