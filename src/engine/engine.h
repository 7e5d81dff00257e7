// The life of a token: requests go in, batches are computed, tokens come out at the sinks.
#pragma once

#include "engine/executor.h"
#include "engine/options.h"
#include "engine/request.h"
#include "engine/scheduler.h"
#include "engine/stats.h"

namespace sluice {

/// Single-threaded: all calls, also those from within a sink, come from one thread.
class Engine {
 public:
  /// `executor` outlives the engine and serves nobody else. Throws kInvalidInput.
  Engine(Executor& executor, const EngineOptions& options);
  /// Waits for the batches under way; their sinks hear nothing of it.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Queues a request. Its sink is called within step(); a request that is wrong or can never fit
  /// gets one event with FinishReason::kError.
  RequestId submit(Request request);
  /// A request that goes on from the tokens of `parent` so far and shares its cache; its own prompt
  /// is replaced by them. Throws kNotFound if the parent has finished.
  RequestId fork(RequestId parent, Request request);
  /// Stops a request; its sink gets a last event with kCancelled. False if it has finished.
  bool cancel(RequestId id);
  /// Stops all requests, and refuses those to come: their sinks get a last event with kAborted.
  void close(const std::string& why) { scheduler_.close(why); }

  /// Keeps the executor supplied, waits for one result and hands out its tokens. `now_us` is the
  /// time, on any clock that never goes back; it only ages waiting requests. False: nothing to do.
  bool step(double now_us);

  /// True if step() has nothing to do until the next submit().
  bool idle() const { return scheduler_.idle(); }
  EngineStats stats() const { return scheduler_.stats(); }
  void forget_prefixes() { scheduler_.forget_prefixes(); }

 private:
  void emit();

  Executor& executor_;
  Scheduler scheduler_;
  double now_us_ = 0;
  // Kept for their memory.
  Batch batch_;
  Result result_;
  std::vector<Emission> events_;
};

}  // namespace sluice
