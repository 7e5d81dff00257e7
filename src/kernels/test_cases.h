// What the kernel tests share: random values, memory with guards, and a paged cache full of NaN.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernels.h"

namespace sluice {

inline constexpr const char* kIsaNames[] = {"avx512", "avx2", "scalar"};

/// The table of that name; nullptr if this machine cannot run it.
inline const KernelTable* find_table(std::string_view isa) {
  for (const KernelTable* table : supported_kernels()) {
    if (isa == table->isa) return table;
  }
  return nullptr;
}
inline const KernelTable& reference_table() { return *find_table("scalar"); }

/// A test per instruction set; one that this machine cannot run shows as skipped.
class IsaTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    table_ = find_table(GetParam());
    if (!table_) GTEST_SKIP() << "this machine cannot run " << GetParam();
  }
  const KernelTable& table() const { return *table_; }

 private:
  const KernelTable* table_ = nullptr;
};

inline std::vector<float> random_values(int64_t n, uint32_t seed, float scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = normal(generator);
  return values;
}

inline bool same_bits(float a, float b) {
  return std::memcmp(&a, &b, sizeof(float)) == 0 || (a != a && b != b);
}

/// n floats at `offset` floats past a 64-byte boundary, with guards that must survive.
class Guarded {
 public:
  Guarded(std::vector<float> values, int64_t offset)
      : n_(int64_t(values.size())), memory_(values.size() + 16 + 2 * kGuard, kMark) {
    const size_t misaligned = reinterpret_cast<uintptr_t>(memory_.data()) / 4 % 16;
    first_ = kGuard + (16 - misaligned) % 16 + size_t(offset);
    std::copy(values.begin(), values.end(), memory_.begin() + long(first_));
  }
  Guarded(int64_t n, int64_t offset) : Guarded(std::vector<float>(size_t(n), 0.0f), offset) {}

  float* data() { return memory_.data() + first_; }
  std::vector<float> values() const {
    for (size_t i = 0; i < memory_.size(); ++i) {
      if (i >= first_ && i < first_ + size_t(n_)) continue;
      if (memory_[i] != kMark) ADD_FAILURE() << "written " << int64_t(i - first_) << " of " << n_;
    }
    return {memory_.begin() + long(first_), memory_.begin() + long(first_) + n_};
  }

 private:
  static constexpr float kMark = -12345.0f;
  static constexpr size_t kGuard = 32;
  int64_t n_;
  size_t first_ = 0;
  std::vector<float> memory_;
};

/// Pages of one block and the table of one sequence, pages in a scattered order. Memory that was
/// not written is NaN, so that reading it shows.
class TestCache {
 public:
  TestCache(bool f16, int64_t n_kv_heads, int64_t head_dim, int64_t v_head_dim, int64_t n_positions)
      : f16_(f16) {
    const int64_t n_pages = (n_positions + kPagePositions - 1) / kPagePositions;
    const int64_t element = f16 ? 2 : 4, v_padded = (v_head_dim + 15) / 16 * 16;
    pages_.k_page_bytes = n_kv_heads * head_dim * kPagePositions * element;
    pages_.v_page_bytes = n_kv_heads * v_padded * kPagePositions * element;
    for (int64_t i = 0; i < n_pages; ++i) page_of_.push_back(int32_t(i));
    std::shuffle(page_of_.begin(), page_of_.end(), std::mt19937(7));
    k_.assign(size_t(n_pages * pages_.k_page_bytes), 0xff);
    v_.assign(size_t(n_pages * pages_.v_page_bytes), 0xff);
    pages_.k = k_.data();
    pages_.v = v_.data();
    pages_.page_of = page_of_.data();
    pages_.n_kv_heads = n_kv_heads;
    pages_.head_dim = head_dim;
    pages_.v_head_dim = v_head_dim;
  }

  /// Writes rows of k and v from `position` on.
  void store(const KernelTable& table, const std::vector<float>& k, const std::vector<float>& v,
             int64_t position) {
    const int64_t k_stride = pages_.n_kv_heads * pages_.head_dim;
    const int64_t v_stride = pages_.n_kv_heads * pages_.v_head_dim;
    (f16_ ? table.kv_store_f16 : table.kv_store_f32)({.pages = pages_,
                                                      .k = k.data(),
                                                      .v = v.data(),
                                                      .n = int64_t(k.size()) / k_stride,
                                                      .position = position,
                                                      .k_stride = k_stride,
                                                      .v_stride = v_stride});
  }

  const KvPages& pages() const { return pages_; }
  const std::vector<uint8_t>& k_bytes() const { return k_; }
  const std::vector<uint8_t>& v_bytes() const { return v_; }
  bool f16() const { return f16_; }

 private:
  bool f16_;
  KvPages pages_{};
  std::vector<int32_t> page_of_;
  std::vector<uint8_t> k_, v_;
};

}  // namespace sluice
