// How fast N threads read memory together, per footprint: the roof that decoding is measured
// against.
//   bandwidth THREADS BYTES...  ->  {"threads": 2, "rows": [{"bytes": 1024, "gb_s": [5 values]}]}
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr int kRepeats = 5;
constexpr double kSecondsPerRepeat = 0.15;
constexpr size_t kWordsPerStep = 64;  // enough independent sums to keep every load port busy
constexpr size_t kThreadAlign = kWordsPerStep * sizeof(uint64_t);

/// Reads every word of [data, data + n); n is a multiple of kWordsPerStep.
uint64_t read_all(const uint64_t* data, size_t n) {
  uint64_t sums[kWordsPerStep] = {};
  for (size_t i = 0; i < n; i += kWordsPerStep) {
    for (size_t j = 0; j < kWordsPerStep; ++j) sums[j] += data[i + j];
  }
  uint64_t total = 0;
  for (uint64_t sum : sums) total += sum;
  return total;
}

void pin_to_cpu(int index) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || index-- > 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
    return;
  }
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// GB/s (10^9) of each repeat. Every thread reads its own slice of `bytes` again and again.
std::vector<double> measure(int n_threads, size_t bytes) {
  const size_t slice = bytes / static_cast<size_t>(n_threads) / kThreadAlign * kThreadAlign;
  const size_t mapped = slice * static_cast<size_t>(n_threads);
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
  madvise(memory, mapped, MADV_HUGEPAGE);

  std::vector<double> result;
  std::barrier barrier(n_threads);
  uint64_t passes = 1;
  std::atomic<uint64_t> sink = 0;  // keeps the reads from being optimised away
  auto work = [&](int index) {
    pin_to_cpu(index);
    auto* data =
        static_cast<uint64_t*>(memory) + slice / sizeof(uint64_t) * static_cast<size_t>(index);
    const size_t n = slice / sizeof(uint64_t);
    for (size_t i = 0; i < n; ++i) data[i] = i;
    uint64_t sum = 0;
    for (int repeat = -1; repeat < kRepeats; ++repeat) {  // repeat -1 finds the number of passes
      barrier.arrive_and_wait();
      const double start = now_s();
      for (uint64_t pass = 0; pass < passes; ++pass) {
        __asm__ volatile("" : : "r"(data) : "memory");  // each pass really reads
        sum += read_all(data, n);
      }
      barrier.arrive_and_wait();
      const double seconds = now_s() - start;
      barrier.arrive_and_wait();
      if (index != 0) continue;
      if (repeat < 0) {
        passes = static_cast<uint64_t>(kSecondsPerRepeat / seconds) + 1;
      } else {
        result.push_back(static_cast<double>(mapped * passes) / seconds / 1e9);
      }
    }
    sink += sum;
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < n_threads; ++i) threads.emplace_back(work, i);
  }
  munmap(memory, mapped);
  return result;
}

bool parse(std::string_view text, size_t& value) {
  const auto [end, error] = std::from_chars(text.begin(), text.end(), value);
  return error == std::errc() && end == text.end() && value > 0;
}

}  // namespace

int main(int argc, char** argv) {
  size_t n_threads = 0;
  bool valid = argc >= 3 && parse(argv[1], n_threads) && n_threads <= 1024;
  std::vector<size_t> footprints(valid ? static_cast<size_t>(argc - 2) : 0);
  for (size_t i = 0; valid && i < footprints.size(); ++i) {
    valid = parse(argv[i + 2], footprints[i]) && footprints[i] >= n_threads * kThreadAlign;
  }
  if (!valid) {
    std::fprintf(stderr, "usage: bandwidth THREADS BYTES...   (at least %zu bytes a thread)\n",
                 kThreadAlign);
    return 1;
  }
  std::printf("{\"threads\": %zu, \"rows\": [", n_threads);
  for (size_t i = 0; i < footprints.size(); ++i) {
    const std::vector<double> gb_s = measure(static_cast<int>(n_threads), footprints[i]);
    if (gb_s.empty()) {
      std::fprintf(stderr, "bandwidth: %zu bytes: the system refused the memory\n", footprints[i]);
      return 1;
    }
    std::printf("%s{\"bytes\": %zu, \"gb_s\": [", i > 0 ? ", " : "", footprints[i]);
    for (size_t j = 0; j < gb_s.size(); ++j) std::printf("%s%.2f", j > 0 ? ", " : "", gb_s[j]);
    std::printf("]}");
  }
  std::printf("]}\n");
}
