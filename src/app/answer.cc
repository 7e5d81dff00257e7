#include "app/answer.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "text/detokenizer.h"

namespace sluice {
namespace {

/// Turns tokens into shown text and decides when a stop text ends the answer.
class TextStream {
 public:
  TextStream(const Tokenizer* tokenizer, const std::vector<std::string>& stop,
             const std::function<void(std::string_view)>& on_text)
      : filter_(stop), on_text_(on_text) {
    if (tokenizer != nullptr) detokenizer_.emplace(*tokenizer, /*skip_special=*/true);
  }

  /// False once a stop text was met.
  bool push(Token token) {
    if (detokenizer_) show(filter_.push(detokenizer_->push(token)));
    return !filter_.stopped();
  }

  std::string finish() {
    if (detokenizer_) {
      show(filter_.push(detokenizer_->finish()));
      show(filter_.finish());
    }
    return std::move(text_);
  }

 private:
  void show(const std::string& text) {
    if (text.empty()) return;
    text_ += text;
    if (on_text_) on_text_(text);
  }

  std::optional<Detokenizer> detokenizer_;
  StopFilter filter_;
  const std::function<void(std::string_view)>& on_text_;
  std::string text_;
};

uint64_t sum(const std::vector<uint64_t>& values) {
  uint64_t total = 0;
  for (uint64_t value : values) total += value;
  return total;
}

}  // namespace

double Phase::joins_per_layer(int n_layers) const {
  if (batches == 0 || n_layers == 0) return 0;
  return double(total().joins) / double(batches) / n_layers;
}

StageTiming Phase::total() const {
  StageTiming total;
  for (const StageTiming& stage : stages) {
    total.compute_us += stage.compute_us;
    total.sync_us += stage.sync_us;
    total.wire_us += stage.wire_us;
    total.idle_us += stage.idle_us;
    total.joins += stage.joins;
  }
  return total;
}

PhaseClock::PhaseClock(const Engine& engine)
    : engine_(engine), stats_(engine.stats()), start_us_(now_us()) {}

Phase PhaseClock::lap() {
  const EngineStats now = engine_.stats();
  const double end_us = now_us();
  Phase phase{.ms = (end_us - start_us_) / 1e3,
              .batches = now.batches - stats_.batches,
              .drafted = sum(now.drafted) - sum(stats_.drafted),
              .accepted = sum(now.accepted) - sum(stats_.accepted),
              .stages = now.stages};
  for (size_t s = 0; s < stats_.stages.size(); ++s) {
    const StageTiming& before = stats_.stages[s];
    phase.stages[s].compute_us -= before.compute_us;
    phase.stages[s].sync_us -= before.sync_us;
    phase.stages[s].wire_us -= before.wire_us;
    phase.stages[s].idle_us -= before.idle_us;
    phase.stages[s].joins -= before.joins;
  }
  stats_ = now;
  start_us_ = end_us;
  return phase;
}

double Answer::prefill_tok_s() const {
  return prefill.ms > 0 ? (n_prompt - n_cached) / prefill.ms * 1e3 : 0;
}

double Answer::decode_tok_s() const {
  return tokens.size() > 1 && decode.ms > 0 ? double(tokens.size() - 1) / decode.ms * 1e3 : 0;
}

const char* finish_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
    case FinishReason::kAborted:
      return "error";
    case FinishReason::kNone:
      break;
  }
  return "none";
}

Request make_request(Runtime& runtime, std::vector<Token> prompt, const AnswerOptions& options) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling = options.sampling;
  request.max_tokens = options.max_tokens;
  request.min_tokens = options.min_tokens;
  request.ignore_end = options.ignore_end;
  if (!options.ignore_end) request.end_tokens = runtime.end_tokens();
  return request;
}

Answer answer(Runtime& runtime, Request request, const std::vector<std::string>& stop,
              const std::function<void(std::string_view)>& on_text) {
  Answer result;
  result.n_prompt = int(request.prompt.size());
  TextStream text(runtime.optional_tokenizer(), stop, on_text);
  PhaseClock clock(runtime.engine());
  std::string error;
  const bool scored = request.sampling.n_top_logprobs >= 0;
  bool is_first = true;
  request.sink = [&, ignore_end = request.ignore_end](const TokenEvent& event) {
    if (std::exchange(is_first, false)) {
      result.n_cached = event.n_cached;
      result.prefill = clock.lap();
    }
    result.finish = event.finish;
    error = event.error;
    if (event.token < 0) return true;
    result.tokens.push_back(event.token);
    if (scored) result.scores.push_back({event.token, event.logprob, event.top});
    if (event.finish == FinishReason::kStop && !ignore_end) return true;
    if (text.push(event.token)) return true;
    result.finish = FinishReason::kStop;
    return false;
  };
  const RequestId id = runtime.engine().submit(std::move(request));
  while (runtime.step()) {
    if (interrupted()) runtime.engine().cancel(id);
  }
  result.decode = clock.lap();
  result.text = text.finish();
  if (result.finish == FinishReason::kError) throw Error(ErrorCode::kInvalidInput, "{}", error);
  return result;
}

}  // namespace sluice
