// Microseconds per join of the thread pool: joins THREADS [MICROSECONDS OF WORK PER JOIN
// [PIECES PER THREAD]]
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "kernels/thread_pool.h"

namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Arithmetic that the compiler must keep: about a nanosecond per step.
void work(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) asm volatile("" : : "r"(i * i) : "memory");
}

}  // namespace

int main(int argc, char** argv) {
  const int n_threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const double work_us = argc > 2 ? std::atof(argv[2]) : 0;
  const int64_t pieces = argc > 3 ? std::atoll(argv[3]) : 16;  // as the panels of a matrix are
  if (n_threads < 1 || pieces < 1) return 2;
  constexpr int64_t kTrial = 100'000;
  double trial_us = 1e9;  // the fastest: without other processes
  for (int i = 0; i < 100; ++i) {
    const auto start = Clock::now();
    work(kTrial);
    trial_us = std::min(trial_us, us_since(start));
  }
  const int64_t steps = int64_t(work_us * double(kTrial) / trial_us);

  const std::vector<int> cores = sluice::usable_cores();
  std::vector<int> pinned;
  if (size_t(n_threads) <= cores.size()) pinned.assign(cores.begin(), cores.begin() + n_threads);
  sluice::ThreadPool pool(n_threads, pinned);
  const int64_t n_pieces = n_threads * pieces;
  const auto body = [&](int64_t first, int64_t last, int) {
    work(steps * (last - first) / n_pieces);
  };
  // Short rounds, so that some fall between the time slices of other processes. Those in which a
  // worker was left out say nothing about joins.
  constexpr int kJoins = 200;
  std::vector<double> rounds;
  for (int round = 0; round < 1000; ++round) {
    const int64_t joins = pool.joins();
    const auto start = Clock::now();
    for (int i = 0; i < kJoins; ++i) pool.parallel_for(n_pieces, 1, body);
    if (pool.joins() == joins + (n_threads > 1 ? kJoins : 0)) {
      rounds.push_back(us_since(start) / kJoins);
    }
  }
  if (rounds.empty()) return 1;
  std::sort(rounds.begin(), rounds.end());
  fmt::print(
      "{} threads, {} us of work in {} pieces: best {:.3f} us, median {:.3f} us, worst {:.3f} us"
      " per join; sync {:.3f} us\n",
      n_threads, work_us, n_pieces, rounds.front(), rounds[rounds.size() / 2], rounds.back(),
      double(pool.sync_ns()) / 1e3 / double(std::max<int64_t>(pool.joins(), 1)));
}
