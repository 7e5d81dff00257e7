#include "serve/response_live.h"

#include <utility>

namespace sluice {

LiveResponse::LiveResponse(const ResponseRequest& request, const ServedModel& model,
                           std::shared_ptr<void> held, Settle settle)
    : builder_(request, *model.tokenizer,
               [this](ResponseEvent event) { publish(std::move(event)); }),
      keeps_log_(request.background),
      held_(std::move(held)),
      settle_(std::move(settle)) {}

void LiveResponse::start(const ServedModel& model, ChatRequest chat, bool generate,
                         std::function<void()> accepted) {
  ChatSinks sinks = answer_sinks(generate);
  if (!generate) chat.max_tokens = 1;  // computes the prompt, and leaves it in the prefix cache
  sinks.accepted = begin(std::move(accepted));
  run(model, std::move(chat), std::move(sinks));
}

void LiveResponse::summarise(const ServedModel& model, ChatRequest chat,
                             std::function<void()> accepted,
                             std::function<void(const std::string&)> next) {
  ChatSinks sinks;
  const auto summary = std::make_shared<std::string>();
  sinks.accepted = begin(std::move(accepted));
  sinks.piece = [summary](const ChatPiece& piece) {
    for (const ChatDelta& delta : piece.deltas) {
      if (delta.kind == ChatDelta::Kind::kText) *summary += delta.text;
    }
  };
  sinks.done = [self = shared_from_this(), summary, next = std::move(next)](
                   const GenerationError& error, const ChatUsage& usage) {
    if (!error.empty()) return self->end(error, usage);
    {
      const std::lock_guard lock(self->mutex_);
      if (self->ended_) return;
      self->spent_ = usage;
    }
    next(*summary);
  };
  run(model, std::move(chat), std::move(sinks));
}

void LiveResponse::go_on(const ServedModel& model, OrderedJson item,
                         std::optional<ChatRequest> chat) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    builder_.add_item(std::move(item));
  }
  if (!chat) return end({}, {});
  run(model, std::move(*chat), answer_sinks(/*generate=*/true));
}

std::function<void(int64_t)> LiveResponse::begin(std::function<void()> accepted) {
  return [self = shared_from_this(), accepted = std::move(accepted)](int64_t) {
    accepted();
    const std::lock_guard lock(self->mutex_);
    self->builder_.begin();
  };
}

ChatSinks LiveResponse::answer_sinks(bool generate) {
  ChatSinks sinks;
  sinks.piece = [self = shared_from_this(), generate](const ChatPiece& piece) {
    const std::lock_guard lock(self->mutex_);
    if (generate && !self->ended_) self->builder_.take(piece);
  };
  sinks.done = [self = shared_from_this(), generate](const GenerationError& error,
                                                     const ChatUsage& usage) {
    self->end(error, usage, generate);
  };
  return sinks;
}

void LiveResponse::end(const GenerationError& error, ChatUsage usage, bool generate) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;
    usage.prompt_tokens += spent_.prompt_tokens;
    usage.cached_tokens += spent_.cached_tokens;
    usage.completion_tokens += spent_.completion_tokens;
    usage.reasoning_tokens += spent_.reasoning_tokens;
    if (generate || !error.empty()) {
      builder_.end(error, usage);
    } else {
      builder_.complete(usage);
    }
  }
  settle();
}

void LiveResponse::run(const ServedModel& model, ChatRequest chat, ChatSinks sinks) {
  std::unique_lock lock(mutex_);
  const int turn = ++n_turns_;
  lock.unlock();
  const auto generation = start_chat(model, std::move(chat), std::move(sinks));
  lock.lock();
  const bool unwanted = ended_;
  if (!unwanted && turn == n_turns_) generation_ = generation;  // else the next one has begun
  lock.unlock();
  if (unwanted) generation->cancel();
}

void LiveResponse::publish(ResponseEvent event) {
  if (event.is_last) {
    last_.push_back(std::move(event));
    return;
  }
  for (const Listener& listener : listeners_) {
    if (listener.event) listener.event(event);
  }
  if (keeps_log_) log_.push_back(std::move(event));
}

/// With ended_ set, nothing changes the builder any more.
void LiveResponse::settle() {
  {
    const std::lock_guard lock(mutex_);
    if (keeps_log_) log_.insert(log_.end(), last_.begin(), last_.end());
  }
  settle_(builder_.resource(), log_, [self = shared_from_this()] { self->deliver(); });
}

void LiveResponse::deliver() {
  const std::lock_guard lock(mutex_);
  delivered_ = true;
  for (const Listener& listener : listeners_) {
    if (listener.event && !last_.empty()) listener.event(last_.front());
    listener.end(builder_.resource());
  }
  listeners_.clear();
  generation_.reset();
  held_.reset();
}

void LiveResponse::listen(Listener listener, int64_t after) {
  const std::lock_guard lock(mutex_);
  for (const ResponseEvent& event : log_) {
    const bool waits = !delivered_ && event.is_last;
    if (listener.event && event.number > after && !waits) listener.event(event);
  }
  if (delivered_) return listener.end(builder_.resource());
  listeners_.push_back(std::move(listener));
}

void LiveResponse::cancel() {
  std::shared_ptr<Generation> generation;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;
    generation = generation_;
    builder_.cancel();
  }
  if (generation) generation->cancel();
  settle();
}

void LiveResponse::show_life() {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  const ResponseEvent event = builder_.sign_of_life();
  for (const Listener& listener : listeners_) {
    if (listener.event) listener.event(event);
  }
}

OrderedJson LiveResponse::snapshot() {
  const std::lock_guard lock(mutex_);
  return builder_.resource();
}

}  // namespace sluice
