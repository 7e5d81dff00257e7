#include "engine/engine.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/error.h"

namespace sluice {

Engine::Engine(Executor& executor, const EngineOptions& options)
    : executor_(executor), scheduler_(options, executor.pools(), std::max(executor.depth(), 1)) {}

Engine::~Engine() {
  for (int n = scheduler_.n_in_flight(); n > 0; --n) executor_.next(result_);
}

RequestId Engine::submit(Request request) { return scheduler_.submit(std::move(request), now_us_); }

RequestId Engine::fork(RequestId parent, Request request) {
  return scheduler_.fork(parent, std::move(request), now_us_);
}

bool Engine::cancel(RequestId id) { return scheduler_.cancel(id); }

bool Engine::step(double now_us) {
  now_us_ = std::max(now_us_, now_us);
  if (scheduler_.idle()) return false;
  while (scheduler_.n_in_flight() < executor_.depth()) {
    scheduler_.next(batch_, now_us_);  // who runs, how many rows and guesses, which pages and slots
    if (batch_.empty()) break;
    executor_.submit(batch_);  // the pipeline, or modelled time
  }
  if (scheduler_.n_in_flight() > 0) {
    executor_.next(result_);
    scheduler_.accept(result_);  // keep the verified prefix, roll the rest back
  }
  emit();  // to the waiting sinks
  return true;
}

void Engine::emit() {
  // A sink may submit, fork or cancel; what that leads to is told in the next round.
  scheduler_.take_events(events_);
  for (Emission& emission : events_) {
    Sequence& sequence = *emission.sequence;
    if (sequence.muted || !sequence.request.sink) continue;
    bool wants_more = false;
    try {
      wants_more = sequence.request.sink(emission.event);
    } catch (const std::exception&) {
      // A sink that throws has nobody left to tell.
    }
    if (wants_more) continue;
    sequence.muted = true;
    scheduler_.cancel(sequence.id, false);
  }
  events_.clear();
}

}  // namespace sluice
