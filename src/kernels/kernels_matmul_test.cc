#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/packed.h"
#include "kernels/random_matrix.h"
#include "weights/safetensors.h"

namespace sluice {
namespace {

constexpr const char* kIsas[] = {"avx512", "avx2", "scalar"};

const KernelTable* find_isa(std::string_view name) {
  for (const KernelTable* table : supported_kernels()) {
    if (table->isa == name) return table;
  }
  return nullptr;
}
const KernelTable& scalar_table() { return *supported_kernels().back(); }

using Values = std::vector<float>;  // (n, 16 * n_panels)

void quantize(const KernelTable& table, RandomRows& x, int64_t n, int64_t k) {
  table.quantize_i8({.x = x.x(0), .out = x.i8(), .n = n, .k = k, .x_stride = x.stride()});
}

/// y of rows [first, first + n) and all panels.
Values multiply(const KernelTable& table, bool i8, const PackedMatrix& w, RandomRows& x,
                int64_t first, int64_t n) {
  const int64_t width = w.n_panels() * kPanelRows;
  Values y(size_t(n * width), -77.0f);
  if (i8) {
    matmul_i8_kernel(table, w.dtype)({.panels = w.data,
                                      .panel_bytes = int64_t(w.panel_bytes),
                                      .n_panels = w.n_panels(),
                                      .k = w.cols,
                                      .x = from_row(x.i8(), first),
                                      .n = n,
                                      .y = y.data(),
                                      .y_stride = width});
  } else {
    matmul_f32_kernel(table, w.dtype)({.panels = w.data,
                                       .panel_bytes = int64_t(w.panel_bytes),
                                       .n_panels = w.n_panels(),
                                       .k = w.cols,
                                       .x = x.x(first),
                                       .n = n,
                                       .x_stride = x.stride(),
                                       .y = y.data(),
                                       .y_stride = width});
  }
  return y;
}

/// Equal bits, or both NaN.
::testing::AssertionResult same_bits(const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    if (std::memcmp(a + i, b + i, 4) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]))) {
      return ::testing::AssertionFailure() << "at " << i << ": " << a[i] << " and " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

std::vector<int64_t> some_cols(DType dtype) {
  const int block = info(dtype).block_elements;
  if (block == 1) return {1, 7, 15, 16, 17, 72, 256};
  if (block == 32) return {32, 64, 96, 288};
  return {256, 768};
}

std::string name_of(DType dtype) { return info(dtype).name; }

/// The tolerance of the kernel's row.
double tolerance_of(const std::string& kernel) {
#define KERNEL(name, Args, tolerance) \
  if (kernel == #name) return tolerance;
#include "kernels/matmul.inc"
#undef KERNEL
  ADD_FAILURE() << "no kernel " << kernel;
  return 0;
}

class Matmul : public ::testing::TestWithParam<std::tuple<const char*, DType>> {
 protected:
  void SetUp() override {
    table_ = find_isa(std::get<0>(GetParam()));
    if (!table_) GTEST_SKIP() << "this machine cannot run " << std::get<0>(GetParam());
  }
  DType dtype() const { return std::get<1>(GetParam()); }
  std::string kernel_name() const {
    std::string name = name_of(dtype());
    for (char& c : name) c = char(std::tolower(c));
    return name;
  }
  int n_modes() const { return has_i8_kernel(dtype()) ? 2 : 1; }

  const KernelTable* table_ = nullptr;
};

TEST_P(Matmul, IsCloseToTheReference) {
  for (const int64_t cols : some_cols(dtype())) {
    for (const int64_t rows : {1, 2, 15, 16, 17, 40}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
      RandomMatrix matrix(dtype(), rows, cols, uint32_t(rows * 1000 + cols));
      const PackedCopy packed(matrix.source());
      constexpr int64_t kRows = 6;
      RandomRows x(kRows, cols, 7);
      if (n_modes() == 2) quantize(scalar_table(), x, kRows, cols);
      for (int i8 = 0; i8 < n_modes(); ++i8) {
        const double tolerance = tolerance_of((i8 ? "matmul_i8_" : "matmul_f32_") + kernel_name());
        const Values expected = multiply(scalar_table(), i8, packed.matrix(), x, 0, kRows);
        const Values y = multiply(*table_, i8, packed.matrix(), x, 0, kRows);
        const int64_t width = packed.matrix().n_panels() * kPanelRows;
        for (int64_t r = 0; r < kRows; ++r) {
          for (int64_t o = 0; o < width; ++o) {
            const size_t at = size_t(r * width + o);
            if (o >= rows) {
              ASSERT_EQ(y[at], 0.0f) << "row that does not exist: " << o;
            } else {
              const double bound = tolerance * terms(packed.matrix(), o, x.x(r));
              ASSERT_NEAR(y[at], expected[at], bound + 1e-37) << "row " << o << ", x " << r;
            }
          }
        }
      }
    }
  }
}

TEST_P(Matmul, OneRowGivesTheSameBitsInEveryCompany) {
  const int64_t cols = info(dtype()).block_elements == 1 ? 83 : 512;
  RandomMatrix matrix(dtype(), 40, cols, 11);
  const PackedCopy packed(matrix.source());
  constexpr int64_t kRows = 140;
  RandomRows x(kRows, cols, 5);
  if (n_modes() == 2) quantize(*table_, x, kRows, cols);
  const PackedMatrix& w = packed.matrix();
  const int64_t width = w.n_panels() * kPanelRows;
  const bool is_scalar = table_ == &scalar_table();
  for (int i8 = 0; i8 < n_modes(); ++i8) {
    SCOPED_TRACE(i8 ? "i8" : "f32");
    Values alone;
    for (int64_t r = 0; r < kRows; ++r) {
      const Values y = multiply(*table_, i8, w, x, r, 1);
      alone.insert(alone.end(), y.begin(), y.end());
    }
    std::vector<int64_t> counts = {63, 64, 65, 66, 128, 131, kRows};
    for (int64_t n = 1; n <= 40; ++n) counts.push_back(n);
    if (is_scalar) counts = {3, 40};
    for (const int64_t n : counts) {
      const int64_t first = n == kRows ? 0 : n % 3;
      const Values together = multiply(*table_, i8, w, x, first, std::min(n, kRows - first));
      ASSERT_TRUE(
          same_bits(together.data(), alone.data() + first * width, int64_t(together.size())))
          << "n = " << n;
    }
    PackedMatrix one = w;
    one.rows = kPanelRows;
    for (int64_t p = 0; p < w.n_panels(); ++p) {
      one.data = w.data + size_t(p) * w.panel_bytes;
      const Values y = multiply(*table_, i8, one, x, 0, 9);
      for (int64_t r = 0; r < 9; ++r) {
        ASSERT_TRUE(same_bits(&y[size_t(r * kPanelRows)],
                              &alone[size_t(r * width + p * kPanelRows)], kPanelRows))
            << "panel " << p;
      }
    }
  }
}

TEST_P(Matmul, EveryVectorIsaGivesTheSameBits) {
  if (table_ == &scalar_table()) GTEST_SKIP() << "the reference has double accumulators";
  for (const int64_t cols : some_cols(dtype())) {
    RandomMatrix matrix(dtype(), 33, cols, 3);
    const PackedCopy packed(matrix.source());
    RandomRows x(9, cols, 2);
    if (n_modes() == 2) quantize(*table_, x, 9, cols);
    for (int i8 = 0; i8 < n_modes(); ++i8) {
      const Values y = multiply(*table_, i8, packed.matrix(), x, 0, 9);
      const Values best = multiply(*supported_kernels().front(), i8, packed.matrix(), x, 0, 9);
      ASSERT_TRUE(same_bits(y.data(), best.data(), int64_t(y.size()))) << cols << " columns";
    }
  }
}

/// One row of the identity at a time: the kernel must return the weights of the format's
/// definition.
void expect_exact_weights(const KernelTable& table, const MatrixSource& source) {
  const PackedCopy packed(source);
  const int64_t cols = source.cols;
  RandomRows x(cols, cols, 1);
  for (int64_t r = 0; r < cols; ++r) {
    std::fill(x.x(r), x.x(r) + cols, 0.0f);
    x.x(r)[r] = 1;
  }
  const Values y = multiply(table, false, packed.matrix(), x, 0, cols);
  const int64_t width = packed.matrix().n_panels() * kPanelRows;
  Values expected(static_cast<size_t>(cols)), unpacked(static_cast<size_t>(cols));
  for (int64_t row = 0; row < source.rows; ++row) {
    decode_to_f32(source.dtype, source.data + size_t(source.stored_row(row)) * source.row_bytes,
                  cols, expected.data());
    unpack_row(packed.matrix(), row, unpacked.data());
    for (int64_t c = 0; c < cols; ++c) {
      ASSERT_EQ(y[size_t(c * width + row)], expected[size_t(c)]) << "weight " << row << ", " << c;
      ASSERT_EQ(unpacked[size_t(c)], expected[size_t(c)]) << "unpacked " << row << ", " << c;
    }
  }
}

TEST_P(Matmul, WeightsAreExact) {
  for (const int64_t cols : some_cols(dtype())) {
    RandomMatrix matrix(dtype(), 21, cols, uint32_t(cols));
    expect_exact_weights(*table_, matrix.source());
  }
}

TEST_P(Matmul, GoldenBlocksAreExact) {
  static const SafetensorsFile golden(SLUICE_GOLDEN_DIR "/gguf-blocks/blocks.safetensors");
  const TensorView* bytes = golden.tensor(name_of(dtype()) + ".bytes");
  const TensorView* values = golden.tensor(name_of(dtype()) + ".values");
  if (!bytes) GTEST_SKIP() << "no golden blocks of this type";
  MatrixSource source;
  source.dtype = dtype();
  source.data = bytes->data;
  source.rows = 1;
  source.cols = values->elements();
  source.row_bytes = bytes->bytes;
  expect_exact_weights(*table_, source);
}

TEST_P(Matmul, NotANumberStaysInItsRow) {
  const int64_t cols = 256;
  RandomMatrix matrix(dtype(), 20, cols, 9);
  const uint16_t infinity = 0x7C00, nan = 0x7E00, big_infinity = 0x7F80, big_nan = 0x7FC0;
  const int field = std::max(half_fields(dtype()).first, 0);
  switch (dtype()) {
    case DType::kMXFP4:
      matrix.row(3)[0] = matrix.row(17)[0] = 255;
      break;
    case DType::kF32:
      std::memcpy(matrix.row(3) + 2, &big_nan, 2);
      std::memcpy(matrix.row(17) + 2, &big_nan, 2);
      break;
    case DType::kBF16:
      std::memcpy(matrix.row(3), &big_nan, 2);
      std::memcpy(matrix.row(17), &big_infinity, 2);
      break;
    default:
      std::memcpy(matrix.row(3) + field, &nan, 2);
      std::memcpy(matrix.row(17) + field, &infinity, 2);
  }
  const PackedCopy packed(matrix.source());
  RandomRows x(6, cols, 4);
  x.x(1)[40] = std::numeric_limits<float>::quiet_NaN();
  x.x(4)[7] = -std::numeric_limits<float>::infinity();
  if (n_modes() == 2) quantize(*table_, x, 6, cols);
  for (int i8 = 0; i8 < n_modes(); ++i8) {
    const Values y = multiply(*table_, i8, packed.matrix(), x, 0, 6);
    for (int64_t r = 0; r < 6; ++r) {
      for (int64_t row = 0; row < 20; ++row) {
        const float value = y[size_t(r * 32 + row)];
        const bool bad = r == 1 || r == 4 || row == 3 || row == 17;
        EXPECT_EQ(std::isfinite(value), !bad) << "x " << r << ", row " << row << ": " << value;
        EXPECT_TRUE(std::isnan(value) || (r != 1 && row != 3)) << "x " << r << ", row " << row;
      }
    }
  }
}

std::string case_name(const ::testing::TestParamInfo<std::tuple<const char*, DType>>& info) {
  return std::string(std::get<0>(info.param)) + "_" + name_of(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Kernels, Matmul,
                         ::testing::Combine(::testing::ValuesIn(kIsas),
                                            ::testing::ValuesIn(kPackedTypes)),
                         case_name);

class Quantize : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    table_ = find_isa(GetParam());
    if (!table_) GTEST_SKIP() << "this machine cannot run " << GetParam();
  }
  const KernelTable* table_ = nullptr;
};

TEST_P(Quantize, GivesTheBitsOfTheReference) {
  const int64_t n = 5, k = 32 * 7;
  RandomRows x(n, k, 3), expected(n, k, 3);
  const float halves[] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 126.5f, -126.5f};
  for (RandomRows* rows : {&x, &expected}) {
    std::fill(rows->x(0), rows->x(0) + 32, 0.0f);
    std::fill(rows->x(1), rows->x(1) + 32, 1e-31f);
    std::fill(rows->x(2), rows->x(2) + 32, -3e38f);
    std::copy(std::begin(halves), std::end(halves), rows->x(3));
    std::fill(rows->x(3) + 8, rows->x(3) + 32, 0.0f);
    std::fill(rows->x(4), rows->x(4) + 32, 1e-30f);
    rows->x(4)[33] = std::numeric_limits<float>::infinity();
    rows->x(4)[65] = std::numeric_limits<float>::quiet_NaN();
  }
  quantize(*table_, x, n, k);
  quantize(scalar_table(), expected, n, k);
  for (int64_t r = 0; r < n; ++r) {
    const I8Rows a = from_row(x.i8(), r), b = from_row(expected.i8(), r);
    EXPECT_TRUE(same_bits(a.scale, b.scale, k / 32)) << "row " << r;
    EXPECT_EQ(std::memcmp(a.q, b.q, size_t(k)), 0) << "row " << r;
    EXPECT_EQ(std::memcmp(a.sum, b.sum, size_t(k / 16) * 4), 0) << "row " << r;
  }
}

TEST_P(Quantize, RoundsTiesToEvenAndKeepsTheScale) {
  RandomRows x(1, 64, 3);
  std::fill(x.x(0), x.x(0) + 64, 0.0f);
  const float halves[] = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 126.5f, -125.5f};
  std::copy(std::begin(halves), std::end(halves), x.x(0));
  x.x(0)[33] = std::numeric_limits<float>::quiet_NaN();
  quantize(*table_, x, 1, 64);
  const I8Rows rows = x.i8();
  const int8_t expected[] = {127, 0, 2, 2, 0, -2, 126, -126};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(rows.q[i], expected[i]) << halves[i];
  EXPECT_EQ(rows.scale[0], 1.0f);
  EXPECT_EQ(rows.sum[0], 127 + 2 + 2 - 2 + 126 - 126);
  EXPECT_EQ(rows.sum[1], 0);
  EXPECT_TRUE(std::isnan(rows.scale[1]));
  EXPECT_EQ(rows.q[33], 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Quantize, ::testing::ValuesIn(kIsas),
                         [](const auto& info) { return std::string(info.param); });

TEST(Packed, BytesAreThoseOfTheFile) {
  for (const DType dtype : kPackedTypes) {
    const size_t in_file = 16 * bytes_of(dtype, 4096);
    const size_t packed = packed_panel_bytes(dtype, 4096);
    EXPECT_GE(packed, in_file) << name_of(dtype);
    // IQ4_XS spends 8 bits on scales of 6, for 1.5 % more.
    EXPECT_LE(double(packed), double(in_file) * (dtype == DType::kIQ4_XS ? 1.015 : 1.0))
        << name_of(dtype);
    EXPECT_EQ(packed_panel_bytes(dtype, 256) % 64, 0u);
  }
  EXPECT_EQ(packed_panel_bytes(DType::kQ4_0, 32), 320u);
  EXPECT_EQ(packed_panel_bytes(DType::kF16, 3), 128u);
}

TEST(Packed, TypesWithoutKernelBecomeF32) {
  EXPECT_EQ(packed_dtype(DType::kIQ2_S), DType::kF32);
  EXPECT_EQ(packed_dtype(DType::kQ6_K), DType::kQ6_K);
  EXPECT_FALSE(has_i8_kernel(DType::kF16));
  EXPECT_TRUE(has_i8_kernel(DType::kMXFP4));
  RandomMatrix matrix(DType::kF8_E4M3, 18, 70, 1);
  RandomMatrix blocks(DType::kIQ4_NL, 18, 64, 1);
  for (MatrixSource source : {matrix.source(), blocks.source()}) {
    if (source.dtype == DType::kIQ4_NL) {  // the same bytes as a type without a kernel
      source.dtype = DType::kTQ2_0;
      source.cols = 256;
      source.rows = 2;
      source.row_bytes = bytes_of(DType::kTQ2_0, 256);
    }
    const PackedCopy packed(source);
    EXPECT_EQ(packed.matrix().dtype, DType::kF32);
    Values row(size_t(source.cols)), expected(size_t(source.cols));
    for (int64_t r = 0; r < source.rows; ++r) {
      unpack_row(packed.matrix(), r, row.data());
      decode_to_f32(source.dtype, source.data + size_t(r) * source.row_bytes, source.cols,
                    expected.data());
      EXPECT_TRUE(same_bits(row.data(), expected.data(), source.cols)) << name_of(source.dtype);
    }
  }
}

TEST(Packed, UndoesInterleavedHeads) {
  RandomMatrix matrix(DType::kQ4_0, 48, 64, 1);
  matrix.source().interleaved_heads = 3;
  expect_exact_weights(scalar_table(), matrix.source());
  // Row 1 of a head of 16 is its stored row 2.
  const PackedCopy packed(matrix.source());
  Values row(64), expected(64);
  unpack_row(packed.matrix(), 17, row.data());
  decode_to_f32(DType::kQ4_0, matrix.source().data + 18 * matrix.source().row_bytes, 64,
                expected.data());
  EXPECT_EQ(row, expected);
}

TEST(Packed, PanelsCanBePackedApart) {
  RandomMatrix matrix(DType::kQ6_K, 70, 512, 1);
  const PackedCopy whole(matrix.source());
  const PackedMatrix& w = whole.matrix();
  std::vector<std::byte> part(2 * w.panel_bytes, std::byte{0x5A});
  pack_panels(matrix.source(), w.dtype, 3, 5, part.data());
  EXPECT_EQ(std::memcmp(part.data(), w.data + 3 * w.panel_bytes, part.size()), 0);
}

}  // namespace
}  // namespace sluice
