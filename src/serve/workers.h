// A few threads for work that would hold up the server's thread: parsing, templates, tokenizing.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice {

class Workers {
 public:
  explicit Workers(int n_threads);
  ~Workers() { stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// `task` must not throw.
  void post(std::function<void()> task);
  /// Waits for tasks that have begun; the others are dropped.
  void stop();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sluice
