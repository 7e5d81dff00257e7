#include "app/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "kernels/arena.h"

namespace sluice {
namespace {

constexpr int64_t kPieceBytes = 1 << 18;
constexpr int kRepeats = 10;
constexpr double kSeconds = 0.05;

/// Words that are read and added together.
using Words = uint64_t __attribute__((vector_size(16)));
constexpr size_t kSums = 8;  // independent ones, to keep every load port busy
constexpr size_t kWordsPerLine = 64 / sizeof(Words);
constexpr size_t kAhead = 4096 / sizeof(Words);  // keeps many reads under way

uint64_t read_piece(const std::byte* data) {
  const Words* words = reinterpret_cast<const Words*>(data);
  Words sums[kSums] = {};
  for (size_t i = 0; i < kPieceBytes / sizeof(Words); i += kSums) {
    for (size_t line = 0; line < kSums; line += kWordsPerLine) {
      __builtin_prefetch(words + i + line + kAhead);
    }
    for (size_t s = 0; s < kSums; ++s) sums[s] += words[i + s];
  }
  Words total{};
  for (const Words& sum : sums) total += sum;
  return total[0] + total[1];
}

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

double measure_read_gb_s(ThreadPool& pool, int64_t bytes) {
  const int64_t n_pieces = std::max<int64_t>(1, bytes / kPieceBytes);
  const PageMemory memory(size_t(n_pieces * kPieceBytes));
  pool.parallel_for(n_pieces, 1, [&](int64_t first, int64_t last, int) {
    std::memset(memory.data() + first * kPieceBytes, 1, size_t((last - first) * kPieceBytes));
  });
  std::atomic<uint64_t> sink = 0;  // keeps the reads from being optimised away
  const auto read_all = [&] {
    pool.parallel_for(n_pieces, 1, [&](int64_t first, int64_t last, int) {
      uint64_t sum = 0;
      for (int64_t p = first; p < last; ++p) sum += read_piece(memory.data() + p * kPieceBytes);
      sink += sum;
    });
  };
  double best = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const double start = now_s();
    int64_t n_passes = 0;
    double seconds = 0;
    for (; seconds < kSeconds; seconds = now_s() - start, ++n_passes) read_all();
    best = std::max(best, double(n_passes * n_pieces * kPieceBytes) / seconds / 1e9);
  }
  return best;
}

}  // namespace sluice
