// Persistent, pinned threads that run one parallel loop at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace sluice {

/// The calling thread takes part as thread 0. Between loops the others spin for a short while, then
/// sleep; when the machine is oversubscribed they sleep at once. One loop at a time; loops do not
/// nest.
class ThreadPool {
 public:
  /// `n_threads` >= 1 in all. `cores`: the logical CPU of each thread; empty: not pinned.
  explicit ThreadPool(int n_threads, std::vector<int> cores = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int size() const;

  /// Calls body(first, last, thread) on disjoint ranges that cover [0, n), in units of `grain`
  /// (the last may be shorter), and returns when all are done: one join. Each thread starts on its
  /// own share and takes over pieces of others' shares when it is done. With one thread or n <=
  /// grain the body runs here, without a join.
  template <typename Body>
  void parallel_for(int64_t n, int64_t grain, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(
        n, grain,
        [](void* context, int64_t first, int64_t last, int thread) {
          (*static_cast<Plain*>(context))(first, last, thread);
        },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  /// Joins since construction, and nanoseconds thread 0 spent starting loops and waiting for the
  /// others at their ends.
  int64_t joins() const;
  int64_t sync_ns() const;

 private:
  using Function = void (*)(void* context, int64_t first, int64_t last, int thread);
  void run(int64_t n, int64_t grain, Function function, void* context);

  struct State;
  std::unique_ptr<State> state_;
};

/// Logical CPUs this process may use (affinity mask), and how many the cgroup's quota allows.
std::vector<int> usable_cores();
int usable_cpu_quota();

}  // namespace sluice
