#include "serve/engine_thread.h"

#include <chrono>
#include <utility>

namespace sluice {

double steady_us() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Turns::take() {
  std::unique_lock lock(mutex_);
  const uint64_t mine = next_++;
  given_.wait(lock, [&] { return now_ == mine; });
}

void Turns::give() {
  {
    const std::lock_guard lock(mutex_);
    ++now_;
  }
  given_.notify_all();
}

EngineThread::EngineThread(Engine& engine, Turns* turns)
    : engine_(engine), turns_(turns), thread_([this] { run(); }) {}

EngineThread::~EngineThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void EngineThread::post(std::function<void(Engine&)> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void EngineThread::run() {
  for (;;) {
    std::vector<std::function<void(Engine&)>> tasks;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !tasks_.empty() || !engine_.idle(); });
      if (stop_) return;
      tasks.swap(tasks_);
    }
    for (const auto& task : tasks) task(engine_);
    if (turns_ != nullptr) turns_->take();
    engine_.step(steady_us());
    if (turns_ != nullptr) turns_->give();
  }
}

}  // namespace sluice
