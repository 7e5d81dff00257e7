#include "app/bandwidth.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>

#include "kernels/arena.h"

namespace sluice {
namespace {

constexpr int64_t kPieceBytes = 1 << 18;
constexpr size_t kLanes = 16;  // independent sums, to keep every load port busy
constexpr double kSeconds = 0.1;

uint64_t read_piece(const std::byte* data) {
  std::array<uint64_t, kLanes> sums{};
  for (int64_t at = 0; at < kPieceBytes; at += int64_t(sizeof(sums))) {
    std::array<uint64_t, kLanes> words;
    std::memcpy(words.data(), data + at, sizeof(words));
    for (size_t i = 0; i < kLanes; ++i) sums[i] += words[i];
  }
  uint64_t total = 0;
  for (const uint64_t sum : sums) total += sum;
  return total;
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
  std::array<double, 5> gb_s{};
  for (double& rate : gb_s) {
    const double start = now_s();
    int64_t n_passes = 0;
    double seconds = 0;
    for (; seconds < kSeconds; seconds = now_s() - start, ++n_passes) read_all();
    rate = double(n_passes * n_pieces * kPieceBytes) / seconds / 1e9;
  }
  std::sort(gb_s.begin(), gb_s.end());
  return gb_s[gb_s.size() / 2];
}

}  // namespace sluice
