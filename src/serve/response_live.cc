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
  ChatSinks sinks;
  if (!generate) chat.max_tokens = 1;  // computes the prompt, and leaves it in the prefix cache
  sinks.accepted = [self = shared_from_this(), accepted = std::move(accepted)](int64_t) {
    accepted();
    const std::lock_guard lock(self->mutex_);
    self->builder_.begin();
  };
  sinks.piece = [self = shared_from_this(), generate](const ChatPiece& piece) {
    const std::lock_guard lock(self->mutex_);
    if (generate && !self->ended_) self->builder_.take(piece);
  };
  sinks.done = [self = shared_from_this(), generate](const GenerationError& error,
                                                     const ChatUsage& usage) {
    {
      const std::lock_guard lock(self->mutex_);
      if (std::exchange(self->ended_, true)) return;
      if (generate || !error.empty()) {
        self->builder_.end(error, usage);
      } else {
        self->builder_.complete(usage);
      }
    }
    self->settle();
  };
  const auto generation = start_chat(model, std::move(chat), std::move(sinks));
  std::unique_lock lock(mutex_);
  const bool unwanted = ended_;
  if (!unwanted) generation_ = generation;
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
