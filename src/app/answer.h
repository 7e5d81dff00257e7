// One request served by a running model: its text as a stream, and where its time went.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/runtime.h"
#include "base/json.h"
#include "serve/stop_filter.h"

namespace sluice {

/// What happened between two moments of an engine.
struct Phase {
  double ms = 0;
  uint64_t batches = 0;
  uint64_t drafted = 0, accepted = 0;
  std::vector<StageTiming> stages;

  /// Fork-joins of one batch, per layer of the model.
  double joins_per_layer(int n_layers) const;
  /// Of all stages.
  StageTiming total() const;
};

/// Measures phases: each call ends one and begins the next.
class PhaseClock {
 public:
  explicit PhaseClock(const Engine& engine);
  Phase lap();

 private:
  const Engine& engine_;
  EngineStats stats_;
  double start_us_;
};

struct AnswerScore {
  Token token = -1;
  float logprob = 0;
  std::vector<TokenScore> top;
};

struct Answer {
  int n_prompt = 0, n_cached = 0;
  std::vector<Token> tokens;        // an end token, if one came, is the last
  std::vector<AnswerScore> scores;  // if log-probabilities were asked for
  std::string text;                 // without end tokens and stop texts
  FinishReason finish = FinishReason::kNone;
  Phase prefill;  // until the first token
  Phase decode;   // from there to the last

  double prefill_tok_s() const;
  /// Of the tokens after the first; 0 without any.
  double decode_tok_s() const;
};

const char* finish_name(FinishReason reason);

/// The request for `prompt` that the flags describe.
Request make_request(Runtime& runtime, std::vector<Token> prompt, const AnswerOptions& options);

/// Serves one request to its end, or until Ctrl-C. `on_text` receives the text as it becomes
/// certain. Throws Error if the request fails.
Answer answer(Runtime& runtime, Request request, const std::vector<std::string>& stop,
              const std::function<void(std::string_view)>& on_text);

Json answer_to_json(const Runtime& runtime, const Answer& answer);
/// The table below an answer, in 80 columns.
std::string answer_table(const Runtime& runtime, const Answer& answer);

}  // namespace sluice
