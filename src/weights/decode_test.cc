#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "weights/codebooks.h"
#include "weights/numbers.h"
#include "weights/safetensors.h"
#include "weights/tensor.h"

namespace sluice {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Blocks of random bits and what they decode to, for every block type of GGUF.
const SafetensorsFile& golden() {
  static const SafetensorsFile file(SLUICE_GOLDEN_DIR "/gguf-blocks/blocks.safetensors");
  return file;
}

TEST(Decode, EveryGoldenTypeExactly) {
  int n_types = 0;
  for (const DTypeInfo& type : all_dtypes()) {
    const TensorView* bytes = golden().tensor(std::string(type.name) + ".bytes");
    const TensorView* values = golden().tensor(std::string(type.name) + ".values");
    if (!bytes) continue;
    ++n_types;
    SCOPED_TRACE(type.name);
    const int64_t n = values->elements();
    ASSERT_EQ(bytes_of(type.dtype, n), bytes->bytes);
    std::vector<float> decoded(static_cast<size_t>(n));
    decode_to_f32(type.dtype, bytes->data, n, decoded.data());
    for (int64_t i = 0; i < n; ++i) {
      const float expected = load<float>(values->data + size_t(i) * sizeof(float));
      ASSERT_EQ(decoded[size_t(i)], expected) << "element " << i;
    }
  }
  EXPECT_EQ(n_types, 25);
  EXPECT_EQ(golden().tensors().size(), 2u * 25u);
}

TEST(Decode, WorksAtAnyAddress) {
  const TensorView* bytes = golden().tensor("Q5_K.bytes");
  std::vector<std::byte> shifted(bytes->bytes + 1);
  std::copy_n(bytes->data, bytes->bytes, shifted.data() + 1);
  std::vector<float> expected(256), actual(256);
  decode_to_f32(DType::kQ5_K, bytes->data, 256, expected.data());
  decode_to_f32(DType::kQ5_K, shifted.data() + 1, 256, actual.data());
  EXPECT_EQ(expected, actual);
}

TEST(Decode, Q8K) {
  std::vector<std::byte> block(bytes_of(DType::kQ8_K, 256));
  const float d = 0.5f;
  std::memcpy(block.data(), &d, sizeof(d));
  for (int i = 0; i < 256; ++i) block[size_t(4 + i)] = std::byte(i);
  std::vector<float> out(256);
  decode_to_f32(DType::kQ8_K, block.data(), 256, out.data());
  EXPECT_EQ(out[3], 1.5f);
  EXPECT_EQ(out[255], -0.5f);
}

TEST(Decode, PlainTypes) {
  const double f64[] = {1.5, -0.1};
  float out[2];
  decode_to_f32(DType::kF64, reinterpret_cast<const std::byte*>(f64), 2, out);
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_EQ(out[1], -0.1f);
  const std::byte f8[] = {std::byte{0x38}, std::byte{0xB9}};
  decode_to_f32(DType::kF8_E4M3, f8, 2, out);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_EQ(out[1], -1.125f);
  decode_to_f32(DType::kF8_E5M2, f8, 2, out);
  EXPECT_EQ(out[0], 0.5f);
  EXPECT_EQ(out[1], -0.625f);
  decode_to_f32(DType::kF8_E8M0, f8, 2, out);
  EXPECT_EQ(out[0], std::ldexp(1.0f, 0x38 - 127));
  EXPECT_EQ(out[1], std::ldexp(1.0f, 0xB9 - 127));
}

TEST(Decode, RefusesTypesThatHoldNoWeights) {
  const std::byte data[8] = {};
  float out[1];
  for (const DType dtype : {DType::kI8, DType::kI64, DType::kBool, DType::kU8}) {
    EXPECT_THROW(decode_to_f32(dtype, data, 1, out), Error);
  }
}

TEST(Numbers, Half) {
  EXPECT_EQ(f16_to_f32(0x3C00), 1.0f);
  EXPECT_EQ(f16_to_f32(0xC000), -2.0f);
  EXPECT_EQ(f16_to_f32(0x7BFF), 65504.0f);
  EXPECT_EQ(f16_to_f32(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_to_f32(0x83FF), -1023 * 0x1p-24f);
  EXPECT_EQ(f16_to_f32(0x7C00), kInfinity);
  EXPECT_EQ(f16_to_f32(0xFC00), -kInfinity);
  EXPECT_TRUE(std::isnan(f16_to_f32(0x7E00)));
  EXPECT_TRUE(std::signbit(f16_to_f32(0x8000)));
  for (uint32_t h = 0; h < 0x7C00; ++h) {  // every finite magnitude, by definition
    const int exponent = int(h >> 10), mantissa = int(h & 1023);
    const float expected = exponent == 0 ? std::ldexp(float(mantissa), -24)
                                         : std::ldexp(float(1024 + mantissa), exponent - 25);
    ASSERT_EQ(f16_to_f32(uint16_t(h)), expected) << h;
  }
}

TEST(Numbers, EightBits) {
  EXPECT_EQ(f8_e4m3_to_f32(0x7E), 448.0f);
  EXPECT_EQ(f8_e4m3_to_f32(0x01), 0x1p-9f);
  EXPECT_TRUE(std::isnan(f8_e4m3_to_f32(0x7F)));
  EXPECT_TRUE(std::isnan(f8_e4m3_to_f32(0xFF)));
  EXPECT_EQ(f8_e5m2_to_f32(0x7B), 57344.0f);
  EXPECT_EQ(f8_e5m2_to_f32(0x7C), kInfinity);
  EXPECT_EQ(f8_e8m0_to_f32(0), 0x1p-127f);
  EXPECT_EQ(f8_e8m0_to_f32(127), 1.0f);
  EXPECT_EQ(f8_e8m0_to_f32(254), 0x1p127f);
  EXPECT_TRUE(std::isnan(f8_e8m0_to_f32(255)));
}

TEST(Codebooks, PointsAreDistinct) {
  const auto expect_distinct = [](const auto& grid) {
    EXPECT_EQ(std::set(grid.begin(), grid.end()).size(), grid.size());
  };
  expect_distinct(kIq2XxsGrid);
  expect_distinct(kIq2XsGrid);
  expect_distinct(kIq2SGrid);
  expect_distinct(kIq1Grid);
  expect_distinct(kIq3XxsGrid);
  expect_distinct(kIq3SGrid);
}

TEST(DTypes, TableIsConsistent) {
  for (const DTypeInfo& type : all_dtypes()) EXPECT_EQ(&info(type.dtype), &type);
  EXPECT_EQ(all_dtypes().size(), 40u);
  for (const int id : {-1, 4, 31, 41, 99, 108, 1 << 30}) EXPECT_EQ(find_dtype(id), nullptr) << id;
  EXPECT_EQ(bytes_of(DType::kQ4_1, 64), 40u);
  EXPECT_EQ(shape_text(std::vector<int64_t>{576, 192}), "(576, 192)");
  EXPECT_EQ(shape_text({}), "()");
}

}  // namespace
}  // namespace sluice
