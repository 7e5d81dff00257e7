// Random matrices of every packed type in the file's format, for tests, benchmarks and fuzzing.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/packed.h"
#include "kernels/packed_layout.h"

namespace sluice {

inline constexpr DType kPackedTypes[] = {
#define PACKED_PLAIN(name, dtype, Values) DType::dtype,
#define PACKED_QUANT(name, dtype, Codes, zero, Scales) DType::dtype,
#include "kernels/packed_types.inc"
#undef PACKED_PLAIN
#undef PACKED_QUANT
};

/// Where a block of the file keeps its f16 fields; -1: nowhere.
struct HalfFields {
  int first = -1, second = -1;
};

inline HalfFields half_fields(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8_E4M3:
    case DType::kMXFP4:
      return {};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108};
    case DType::kQ6_K:
      return {208};
    default:
      return {0};
  }
}

/// A scale as f16 bits: one in eight is zero, subnormal, large or negative and tiny, the others are
/// between 2^-7 and 2 of either sign.
template <class Random>
uint16_t random_half(Random& random) {
  constexpr uint16_t kSpecial[] = {0x0000, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0xF000, 0x0400, 0x8401};
  const uint32_t bits = uint32_t(random());
  if (bits % 8 == 0) return kSpecial[bits / 8 % 8];
  const uint32_t exponent = 8 + bits / 8 % 8;
  return uint16_t((bits >> 8 & 0x83FF) | exponent << 10);
}

/// (rows, cols) random weights; cols a multiple of the type's block.
class RandomMatrix {
 public:
  RandomMatrix(DType dtype, int64_t rows, int64_t cols, uint32_t seed) : random_(seed) {
    source_.dtype = dtype;
    source_.rows = rows;
    source_.cols = cols;
    source_.row_bytes = bytes_of(dtype, cols);
    bytes_.resize(size_t(rows) * source_.row_bytes);
    const size_t block_bytes = size_t(info(dtype).block_bytes);
    for (size_t at = 0; at < bytes_.size(); at += block_bytes) fill_block(&bytes_[at], block_bytes);
    source_.data = reinterpret_cast<const std::byte*>(bytes_.data());
  }
  RandomMatrix(const RandomMatrix&) = delete;

  MatrixSource& source() { return source_; }
  uint8_t* row(int64_t r) { return bytes_.data() + size_t(r) * source_.row_bytes; }

 private:
  void fill_block(uint8_t* block, size_t n) {
    for (size_t i = 0; i < n; ++i) block[i] = uint8_t(random_());
    const uint16_t halves[] = {random_half(random_), random_half(random_)};
    const HalfFields fields = half_fields(source_.dtype);
    if (fields.first >= 0) std::memcpy(block + fields.first, &halves[0], 2);
    if (fields.second >= 0) std::memcpy(block + fields.second, &halves[1], 2);
    const float value = std::normal_distribution<float>()(random_);
    if (source_.dtype == DType::kF32) std::memcpy(block, &value, 4);
    if (source_.dtype == DType::kF16) std::memcpy(block, &halves[0], 2);
    if (source_.dtype == DType::kBF16)
      std::memcpy(block, reinterpret_cast<const char*>(&value) + 2, 2);
    if (source_.dtype == DType::kMXFP4)
      block[0] = uint8_t(random_() % 16 ? 118 + block[0] % 20 : block[0] % 3);
  }

  std::mt19937 random_;
  std::vector<uint8_t> bytes_;
  MatrixSource source_;
};

/// A packed matrix with its memory.
class PackedCopy {
 public:
  explicit PackedCopy(const MatrixSource& source) {
    matrix_.dtype = packed_dtype(source.dtype);
    matrix_.rows = source.rows;
    matrix_.cols = source.cols;
    matrix_.panel_bytes = packed_panel_bytes(matrix_.dtype, source.cols);
    memory_.resize(matrix_.bytes() + 63, std::byte{0xA5});  // packing must not rely on zeros
    std::byte* data = memory_.data() + (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64) % 64;
    pack_panels(source, matrix_.dtype, 0, matrix_.n_panels(), data);
    matrix_.data = data;
  }
  PackedCopy(const PackedCopy&) = delete;

  const PackedMatrix& matrix() const { return matrix_; }

 private:
  PackedMatrix matrix_;
  std::vector<std::byte> memory_;
};

/// How much the terms of an output add up to: what rounding errors are relative to.
inline double terms(const PackedMatrix& w, int64_t row, const float* x) {
  const auto* panel =
      reinterpret_cast<const uint8_t*>(w.data) + size_t(row / kPanelRows) * w.panel_bytes;
  const int lane = int(row % kPanelRows);
  double sum = 0;
  for (int64_t k = 0; k < w.cols; ++k) {
    double weight = 0;
    switch (w.dtype) {
#define PACKED_PLAIN(name, dtype, Type)                                 \
  case DType::dtype:                                                    \
    weight = layout::Type::get(panel + k * layout::Type::kBytes, lane); \
    break;
#define PACKED_QUANT(name, dtype, Codes, zero, Scales)                           \
  case DType::dtype: {                                                           \
    using Type = layout::Quant<layout::Codes, zero, layout::Scales>;             \
    const layout::Scale s = Type::scale(panel, w.cols, k, lane);                 \
    weight = std::fabs(double(s.scale)) * std::abs(Type::code(panel, k, lane)) + \
             std::fabs(double(s.min));                                           \
    break;                                                                       \
  }
#include "kernels/packed_types.inc"
#undef PACKED_PLAIN
#undef PACKED_QUANT
      default:
        break;
    }
    sum += std::fabs(weight * x[k]);
  }
  return sum;
}

/// (n, k) activations, also quantised.
class RandomRows {
 public:
  RandomRows(int64_t n, int64_t k, uint32_t seed)
      : stride_((k + 63) / 64 * 64),
        x_(size_t(n * stride_)),
        q_(size_t(n * stride_)),
        scale_(size_t(n * stride_ / 32)),
        sum_(size_t(n * stride_ / 16)) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (float& x : x_) x = normal(random);
  }

  float* x(int64_t r) { return x_.data() + r * stride_; }
  int64_t stride() const { return stride_; }
  I8Rows i8() {
    return {q_.data(), scale_.data(), sum_.data(), stride_, stride_ / 32, stride_ / 16};
  }

 private:
  int64_t stride_;
  std::vector<float> x_;
  std::vector<int8_t> q_;
  std::vector<float> scale_;
  std::vector<int32_t> sum_;
};

inline I8Rows from_row(I8Rows x, int64_t row) {
  x.q += row * x.q_stride;
  x.scale += row * x.scale_stride;
  x.sum += row * x.sum_stride;
  return x;
}

}  // namespace sluice
