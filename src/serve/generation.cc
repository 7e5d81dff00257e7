#include "serve/generation.h"

#include <algorithm>
#include <utility>

#include "serve/stop_filter.h"
#include "text/detokenizer.h"

namespace sluice {

struct Generation::Choice {
  Choice(int choice_number, const Tokenizer& tokenizer, const std::vector<std::string>& stop)
      : number(choice_number), detokenizer(tokenizer, /*skip_special=*/false), filter(stop) {}

  int number;
  RequestId id = 0;
  bool open = false, begun = false;
  Detokenizer detokenizer;
  StopFilter filter;
  size_t n_seen = 0, n_shown = 0;    // bytes of text: of tokens so far, given out
  std::vector<ScoredToken> pending;  // scores of tokens whose text is held back
  int n_tokens = 0;                  // since the last piece
  double last_us = 0;
};

namespace {

/// Notes that the constraint itself failed: too many ways to read the text, or no token that fits.
class WatchedConstraint : public TokenConstraint {
 public:
  WatchedConstraint(std::shared_ptr<TokenConstraint> constraint, std::shared_ptr<bool> failed)
      : constraint_(std::move(constraint)), failed_(std::move(failed)) {}

  void allowed(std::vector<uint32_t>& bits) override {
    watch([&] { constraint_->allowed(bits); });
  }
  bool accept(Token token) override {
    bool accepted = false;
    watch([&] { accepted = constraint_->accept(token); });
    return accepted;
  }
  void rollback(int n) override { constraint_->rollback(n); }

 private:
  template <typename F>
  void watch(F&& f) {
    *failed_ = true;  // unless f returns
    f();
    *failed_ = false;
  }

  std::shared_ptr<TokenConstraint> constraint_;
  std::shared_ptr<bool> failed_;
};

}  // namespace

GenerationError error_of(const TokenEvent& event) {
  if (event.finish == FinishReason::kAborted) {
    return {event.error, GenerationError::Cause::kShutdown};
  }
  if (event.finish == FinishReason::kError) return {event.error, GenerationError::Cause::kServer};
  return {};
}

Generation::Generation(EngineThread& thread, const Tokenizer& tokenizer, Metrics& metrics,
                       GenerationRequest request, Sinks sinks)
    : thread_(thread),
      tokenizer_(tokenizer),
      metrics_(metrics),
      request_(std::move(request)),
      sinks_(std::move(sinks)),
      start_us_(steady_us()) {}

Generation::~Generation() { settle(); }

void Generation::settle() {
  if (const auto account = std::exchange(request_.account, nullptr)) account(usage_);
}

std::shared_ptr<Generation> Generation::start(EngineThread& thread, const Tokenizer& tokenizer,
                                              Metrics& metrics, GenerationRequest request,
                                              Sinks sinks) {
  const std::shared_ptr<Generation> self(
      new Generation(thread, tokenizer, metrics, std::move(request), std::move(sinks)));
  const int n_prompts = int(self->request_.prompts.size());
  for (int i = 0; i < n_prompts * self->request_.n; ++i) {
    self->choices_.push_back(std::make_unique<Choice>(i, tokenizer, self->request_.stop));
    if (!self->request_.continues) continue;
    self->choices_.back()->detokenizer.follow(self->request_.prompts[size_t(i / self->request_.n)]);
  }
  self->n_open_ = int(self->choices_.size());
  thread.post([self, n_prompts](Engine& engine) {
    // The other choices of a prompt follow when the first has computed it.
    for (int p = 0; p < n_prompts && !self->cancelled_; ++p) {
      self->submit(engine, p * self->request_.n);
    }
  });
  return self;
}

void Generation::cancel() {
  if (cancelled_.exchange(true)) return;
  thread_.post([self = shared_from_this()](Engine& engine) {
    for (const auto& choice : self->choices_) {
      if (choice->open) engine.cancel(choice->id);
    }
  });
}

void Generation::submit(Engine& engine, int number) {
  Choice& choice = *choices_[size_t(number)];
  Request request = request_.request;
  request.prompt = request_.prompts[size_t(number / request_.n)];
  request.sampling.seed += uint64_t(number % request_.n);
  if (request_.constrain) {
    request.constraint =
        std::make_shared<WatchedConstraint>(request_.constrain(), constraint_failed_);
  }
  request.sink = [self = shared_from_this(), &engine, &choice](const TokenEvent& event) {
    return self->take(engine, choice, event);
  };
  choice.open = true;
  choice.id = engine.submit(std::move(request));
}

bool Generation::take(Engine& engine, Choice& choice, const TokenEvent& event) {
  if (cancelled_) {
    choice.open = false;
    return false;
  }
  GenerationError error = error_of(event);
  const bool failed = !error.empty();
  if (event.finish == FinishReason::kError && *constraint_failed_) {
    error.cause = GenerationError::Cause::kRequest;
  }
  if (error_.empty()) error_ = std::move(error);
  Piece piece;
  piece.choice = choice.number;
  if (!std::exchange(choice.begun, true) && choice.number % request_.n == 0) {
    if (event.admitted_us > 0) {
      usage_.prompt_tokens += int64_t(request_.prompts[size_t(choice.number / request_.n)].size());
      usage_.cached_tokens += event.n_cached;
      metrics_.queue_s.add(std::max(event.admitted_us - start_us_, 0.0) / 1e6);
    }
    piece.prompt_logprobs = event.prompt_logprobs;
    for (int i = 1; i < request_.n && !failed; ++i) {
      submit(engine, choice.number + i);
    }
  }
  if (event.token >= 0) add_token(choice, event, piece);
  if (choice.filter.stopped()) {
    piece.finish = FinishReason::kStop;
    piece.stop = choice.filter.stop_text();
  }
  if (event.finish != FinishReason::kNone) end(choice, event, piece);
  const bool ended = piece.finish != FinishReason::kNone;
  const bool has_news =
      !piece.text.empty() || !piece.scores.empty() || !piece.prompt_logprobs.empty() || ended;
  bool goes_on = !ended;
  if (has_news && error_.empty()) {
    piece.n_tokens = std::exchange(choice.n_tokens, 0);
    goes_on = sinks_.piece(std::move(piece)) && goes_on;
  }
  if (goes_on) return true;
  choice.open = false;
  if (!error_.empty()) {
    const GenerationError error = error_;
    cancel();
    settle();
    sinks_.done(error, usage_);
  } else if (--n_open_ == 0) {
    settle();
    sinks_.done({}, usage_);
  }
  return false;
}

void Generation::add_token(Choice& choice, const TokenEvent& event, Piece& piece) {
  measure(choice);
  ++usage_.completion_tokens;
  ++choice.n_tokens;
  const bool is_end = event.finish == FinishReason::kStop;  // an end token has no text
  if (is_end) return;
  if (request_.request.sampling.n_top_logprobs >= 0) {
    choice.pending.push_back({event.token, event.logprob, event.top, choice.n_seen});
  }
  const bool hidden = tokenizer_.is_special(event.token) &&
                      !std::ranges::binary_search(request_.visible, event.token);
  const std::string text = hidden ? "" : choice.detokenizer.push(event.token);
  choice.n_seen += text.size();
  piece.text = choice.filter.push(text);
  choice.n_shown += piece.text.size();
  // A token's score goes out with the first byte of its text.
  size_t n_ready = 0;
  const bool all = choice.n_shown == choice.n_seen;
  while (n_ready < choice.pending.size() &&
         (all || choice.pending[n_ready].offset < choice.n_shown)) {
    ++n_ready;
  }
  if (choice.filter.stopped()) {
    while (n_ready > 0 && choice.pending[n_ready - 1].offset >= choice.n_shown) --n_ready;
  }
  const auto ready = choice.pending.begin() + int64_t(n_ready);
  piece.scores.assign(std::make_move_iterator(choice.pending.begin()),
                      std::make_move_iterator(ready));
  choice.pending.erase(choice.pending.begin(), ready);
}

void Generation::measure(Choice& choice) {
  const double now = steady_us();
  if (choice.last_us == 0) {
    metrics_.first_token_s.add((now - start_us_) / 1e6);
  } else {
    metrics_.inter_token_s.add((now - choice.last_us) / 1e6);
  }
  choice.last_us = now;
}

/// What was held back goes out, unless a stop text has ended the choice.
void Generation::end(Choice& choice, const TokenEvent& event, Piece& piece) {
  if (choice.filter.stopped()) return;
  piece.text += choice.filter.push(choice.detokenizer.finish());
  piece.text += choice.filter.finish();
  for (ScoredToken& score : choice.pending) piece.scores.push_back(std::move(score));
  choice.pending.clear();
  piece.finish = choice.filter.stopped() ? FinishReason::kStop : event.finish;
}

}  // namespace sluice
