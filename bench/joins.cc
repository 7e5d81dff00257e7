// Microseconds per join of the thread pool: joins THREADS [MICROSECONDS OF WORK PER JOIN]
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
  if (n_threads < 1) return 2;
  const int64_t trial = 10'000'000;
  auto start = Clock::now();
  work(trial);
  const int64_t steps = int64_t(work_us * double(trial) / us_since(start));

  const std::vector<int> cores = sluice::usable_cores();
  std::vector<int> pinned;
  if (size_t(n_threads) <= cores.size()) pinned.assign(cores.begin(), cores.begin() + n_threads);
  sluice::ThreadPool pool(n_threads, pinned);
  // The work is cut into 16 pieces per thread, as the panels of a matrix are.
  const int64_t n_pieces = n_threads * int64_t{16};
  const auto body = [&](int64_t first, int64_t last, int) {
    work(steps * (last - first) / n_pieces);
  };
  const int64_t grain = work_us > 0 ? 1 : 16;
  std::vector<double> rounds;
  for (int round = 0; round < 20; ++round) {
    const int64_t n = std::clamp<int64_t>(int64_t(50'000 / (work_us + 0.5)), 100, 20'000);
    start = Clock::now();
    for (int64_t i = 0; i < n; ++i) pool.parallel_for(n_pieces, grain, body);
    rounds.push_back(us_since(start) / double(n));
  }
  std::sort(rounds.begin(), rounds.end());
  fmt::print(
      "{} threads, {} us of work per join: best {:.3f} us, median {:.3f} us, worst {:.3f} us"
      " per join; sync {:.3f} us\n",
      n_threads, work_us, rounds.front(), rounds[rounds.size() / 2], rounds.back(),
      double(pool.sync_ns()) / 1e3 / double(std::max<int64_t>(pool.joins(), 1)));
}
