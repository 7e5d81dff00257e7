// How a loop runs. Every thread has a share: a word (next piece, end) and the loop it belongs to.
// Thread 0 writes the shares, everyone claims pieces by compare-and-swap, first from its own share,
// then from others'. A claimed piece keeps the loop alive, so its description is read after the
// claim, and a thread that comes late either claims a piece of whatever loop now runs or finds
// nothing. Thread 0 waits for pieces, not for threads: one that does not run holds up nobody
// unless it was stopped inside a piece. So that this is rare, a worker that has to share its CPU
// with another process gives it away between two pieces, before the kernel takes it.
#include "kernels/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "base/error.h"
#include "kernels/cpu_quota.h"
#include "kernels/cpu_turns.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kSpin{100};       // before sleeping, if every thread has a CPU
constexpr microseconds kGap{300};        // not seen running for this long: another process was
constexpr milliseconds kGapMemory{100};  // how long that is taken to go on
constexpr milliseconds kTurn{2};         // shorter than the time slices of common kernels
constexpr int kPatientLooks = 20;
constexpr int kPausesPerLook = 512;  // between looks at the clock, 5 to 25 us

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// A cheap counter of constant rate.
int64_t ticks() {
#if defined(__x86_64__)
  return int64_t(__rdtsc());
#else
  return Clock::now().time_since_epoch().count();
#endif
}

/// Ticks in a duration.
int64_t to_ticks(Clock::duration duration) {
  static const double per_ns = [] {
    const Clock::time_point start = Clock::now();
    const int64_t first = ticks();
    Clock::time_point now = start;
    while (now - start < kSpin) now = Clock::now();
    return double(ticks() - first) / double(std::chrono::nanoseconds(now - start).count());
  }();
  return int64_t(double(std::chrono::nanoseconds(duration).count()) * per_ns);
}

void give_way(CpuTurns& turns) {
  sched_yield();
  turns.begin(ticks());
}

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(size_t(core), &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

}  // namespace

struct ThreadPool::State {
  // Written by thread 0 when a loop starts; the claim changes with every piece taken.
  struct alignas(64) Share {
    std::atomic<uint64_t> claim{0};  // next piece << 32 | end
    std::atomic<Function> function{nullptr};
    std::atomic<void*> context{nullptr};
    std::atomic<int64_t> n{0}, grain{1};
  };
  explicit State(int n_threads) : shares(size_t(n_threads)) {}

  bool claim_piece(Share& share, int thread);
  int64_t work(size_t first, size_t n);
  void report(int64_t done) {
    if (done > 0) completed.fetch_add(uint64_t(done), std::memory_order_release);
  }
  void work_as_worker(int thread, CpuTurns& turns);
  void worker_loop(int thread);
  bool wait_for_share(int thread, CpuTurns& turns);
  void deal(int64_t n, int64_t grain, int64_t n_pieces, Function function, void* context);
  void wait_for_pieces();

  std::vector<Share> shares;
  std::vector<std::thread> workers;
  bool crowded = false;  // more threads than CPUs
  std::vector<int> cores;
  cpu_set_t caller_cores{};

  alignas(64) std::atomic<uint64_t> completed{0};  // pieces done by workers, since construction
  alignas(64) std::atomic<int> n_sleeping{0};
  std::atomic<uint32_t> wakes{0};  // what sleepers wait on
  std::atomic<bool> stop{false};

  alignas(64) uint64_t expected = 0;  // `completed` at the end of the last loop
  int64_t n_joins = 0, sync_ticks = 0;
};

// Runs one piece of the share, if there is one left.
bool ThreadPool::State::claim_piece(Share& share, int thread) {
  uint64_t claim = share.claim.load(std::memory_order_relaxed);
  do {
    if (claim >> 32 >= (claim & 0xffffffff)) return false;
  } while (!share.claim.compare_exchange_weak(
      claim, claim + (uint64_t{1} << 32), std::memory_order_acq_rel, std::memory_order_relaxed));
  const int64_t n = share.n.load(std::memory_order_relaxed);
  const int64_t grain = share.grain.load(std::memory_order_relaxed);
  const int64_t first = int64_t(claim >> 32) * grain;
  share.function.load(std::memory_order_relaxed)(share.context.load(std::memory_order_relaxed),
                                                 first, std::min(n, first + grain), thread);
  return true;
}

// Thread 0 does what is left of the shares of `n` threads from `first` on; returns how many pieces.
int64_t ThreadPool::State::work(size_t first, size_t n) {
  int64_t done = 0;
  for (size_t i = first; i < first + n; ++i) {
    while (claim_piece(shares[i], 0)) ++done;
  }
  return done;
}

// A worker does the same, from its own share on.
void ThreadPool::State::work_as_worker(int thread, CpuTurns& turns) {
  for (size_t i = 0; i < shares.size(); ++i) {
    Share& share = shares[(size_t(thread) + i) % shares.size()];
    int64_t done = 0;
    while (claim_piece(share, thread)) {
      ++done;
      if (turns.over(ticks())) {
        report(std::exchange(done, 0));
        give_way(turns);
      }
    }
    // Before the next share is looked at: thread 0 may be waiting for these.
    report(done);
  }
}

// Spins, then sleeps, until there may be something to do; false when the pool ends.
bool ThreadPool::State::wait_for_share(int thread, CpuTurns& turns) {
  const std::atomic<uint64_t>& claim = shares[size_t(thread)].claim;
  const auto has_pieces = [&] {
    const uint64_t word = claim.load(std::memory_order_relaxed);
    return word >> 32 < (word & 0xffffffff);
  };
  const Clock::time_point give_up = Clock::now() + (crowded ? microseconds(0) : kSpin);
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (has_pieces()) return true;
      pause();
    }
    if (stop.load(std::memory_order_relaxed)) return false;
    if (turns.over(ticks())) give_way(turns);
    // A long loop may be under way whose share of this thread was taken over.
    work_as_worker(thread, turns);
  } while (Clock::now() < give_up);

  const uint32_t seen = wakes.load(std::memory_order_acquire);
  n_sleeping.fetch_add(1, std::memory_order_acq_rel);
  if (!has_pieces() && !stop.load()) wakes.wait(seen, std::memory_order_acquire);
  n_sleeping.fetch_sub(1, std::memory_order_acq_rel);
  turns.wake(ticks());
  return !stop.load();
}

void ThreadPool::State::worker_loop(int thread) {
  if (!cores.empty()) pin(cores[size_t(thread)]);
  CpuTurns turns(to_ticks(kGap), to_ticks(kGapMemory), to_ticks(kTurn), ticks());
  while (wait_for_share(thread, turns)) work_as_worker(thread, turns);
}

void ThreadPool::State::deal(int64_t n, int64_t grain, int64_t n_pieces, Function function,
                             void* context) {
  const int64_t n_threads = int64_t(shares.size());
  for (int64_t t = 0; t < n_threads; ++t) {
    // Rounded up, so that thread 0 has a piece.
    const int64_t first = (n_pieces * t + n_threads - 1) / n_threads;
    const int64_t last = (n_pieces * (t + 1) + n_threads - 1) / n_threads;
    Share& share = shares[size_t(t)];
    share.n.store(n, std::memory_order_relaxed);
    share.grain.store(grain, std::memory_order_relaxed);
    share.function.store(function, std::memory_order_relaxed);
    share.context.store(context, std::memory_order_relaxed);
    share.claim.store(uint64_t(first) << 32 | uint64_t(last), std::memory_order_release);
  }
  // A worker that falls asleep just now may miss the deal; then its share is taken over.
  if (n_sleeping.load(std::memory_order_relaxed) > 0) {
    wakes.fetch_add(1, std::memory_order_release);
    wakes.notify_all();
  }
}

void ThreadPool::State::wait_for_pieces() {
  const auto done = [&] { return completed.load(std::memory_order_acquire) == expected; };
  for (int look = 0;; ++look) {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (done()) return;
      pause();
    }
    // Whoever has the piece may need this CPU.
    if (crowded || look > kPatientLooks) std::this_thread::yield();
  }
}

ThreadPool::ThreadPool(int n_threads, std::vector<int> cores) {
  CHECK(n_threads >= 1);
  const std::vector<int> usable = usable_cores();
  if (!cores.empty() && cores.size() != size_t(n_threads)) {
    throw Error(ErrorCode::kInvalidInput, "cores: expected one per thread ({}), got {}", n_threads,
                cores.size());
  }
  for (int core : cores) {
    if (std::find(usable.begin(), usable.end(), core) == usable.end()) {
      throw Error(ErrorCode::kInvalidInput, "cores: expected CPUs of this process, got {}", core);
    }
  }
  state_ = std::make_unique<State>(n_threads);
  state_->crowded = n_threads > std::min(int(usable.size()), usable_cpu_quota());
  state_->cores = std::move(cores);
  if (!state_->cores.empty()) {
    pthread_getaffinity_np(pthread_self(), sizeof(cpu_set_t), &state_->caller_cores);
    pin(state_->cores[0]);
  }
  for (int t = 1; t < n_threads; ++t) {
    state_->workers.emplace_back([s = state_.get(), t] { s->worker_loop(t); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stop.store(true);
  state_->wakes.fetch_add(1);
  state_->wakes.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
  if (!state_->cores.empty()) {
    pthread_setaffinity_np(pthread_self(), sizeof(cpu_set_t), &state_->caller_cores);
  }
}

int ThreadPool::size() const { return int(state_->shares.size()); }

void ThreadPool::run(int64_t n, int64_t grain, Function function, void* context) {
  State& s = *state_;
  if (n <= 0) return;
  if (size() == 1 || n <= grain) {
    function(context, 0, n, 0);
    return;
  }
  const int64_t n_pieces = (n + grain - 1) / grain;
  CHECK(n_pieces < int64_t{1} << 32);
  const int64_t start = ticks();
  s.deal(n, grain, n_pieces, function, context);
  const int64_t dealt = ticks();
  s.expected += uint64_t(n_pieces - s.work(0, 1));
  if (s.completed.load(std::memory_order_acquire) != s.expected) {
    s.expected -= uint64_t(s.work(1, s.shares.size() - 1));
  }
  const int64_t worked = ticks();
  s.wait_for_pieces();
  s.sync_ticks += dealt - start + ticks() - worked;
  ++s.n_joins;
}

int64_t ThreadPool::joins() const { return state_->n_joins; }

int64_t ThreadPool::sync_ns() const {
  return int64_t(double(state_->sync_ticks) / double(to_ticks(std::chrono::seconds(1))) * 1e9);
}

std::vector<int> usable_cores() {
  // Read once, before any thread is pinned: a pinned thread sees its own core only.
  static const std::vector<int> all = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cores;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
      for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(size_t(core), &set)) cores.push_back(core);
      }
    }
    if (cores.empty()) cores.push_back(0);
    return cores;
  }();
  return all;
}

int usable_cpu_quota() {
  const int n_cores = int(usable_cores().size());
  const double quota = cgroup_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
  return quota > 0 ? std::clamp(int(quota), 1, n_cores) : n_cores;
}

}  // namespace sluice
