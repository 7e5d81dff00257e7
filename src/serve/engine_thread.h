// The thread on which an engine lives: others leave tasks for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/engine.h"

namespace sluice {

/// Several engines on the same cores step one at a time, in the order in which they ask.
class Turns {
 public:
  void take();
  void give();

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  uint64_t next_ = 0, now_ = 0;
};

class EngineThread {
 public:
  /// From here on `engine`, which must live on, belongs to the thread. `turns`, unless it is
  /// nullptr, is shared with others and outlives the thread.
  explicit EngineThread(Engine& engine, Turns* turns = nullptr);
  /// Stops after the step under way. Requests that are open hear nothing of it.
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  /// Runs `task`, which must not throw, on the thread before its next step, in the order of calls.
  void post(std::function<void(Engine&)> task);

 private:
  void run();

  Engine& engine_;
  Turns* turns_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::function<void(Engine&)>> tasks_;
  bool stop_ = false;
  std::thread thread_;
};

/// Microseconds on a clock that never goes back.
double steady_us();

}  // namespace sluice
