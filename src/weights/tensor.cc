#include "weights/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/error.h"

namespace sluice {
namespace {

constexpr DTypeInfo kTypes[] = {
    {DType::kF32, "F32", 1, 4},           {DType::kF16, "F16", 1, 2},
    {DType::kQ4_0, "Q4_0", 32, 18},       {DType::kQ4_1, "Q4_1", 32, 20},
    {DType::kQ5_0, "Q5_0", 32, 22},       {DType::kQ5_1, "Q5_1", 32, 24},
    {DType::kQ8_0, "Q8_0", 32, 34},       {DType::kQ2_K, "Q2_K", 256, 84},
    {DType::kQ3_K, "Q3_K", 256, 110},     {DType::kQ4_K, "Q4_K", 256, 144},
    {DType::kQ5_K, "Q5_K", 256, 176},     {DType::kQ6_K, "Q6_K", 256, 210},
    {DType::kQ8_K, "Q8_K", 256, 292},     {DType::kIQ2_XXS, "IQ2_XXS", 256, 66},
    {DType::kIQ2_XS, "IQ2_XS", 256, 74},  {DType::kIQ3_XXS, "IQ3_XXS", 256, 98},
    {DType::kIQ1_S, "IQ1_S", 256, 50},    {DType::kIQ4_NL, "IQ4_NL", 32, 18},
    {DType::kIQ3_S, "IQ3_S", 256, 110},   {DType::kIQ2_S, "IQ2_S", 256, 82},
    {DType::kIQ4_XS, "IQ4_XS", 256, 136}, {DType::kI8, "I8", 1, 1},
    {DType::kI16, "I16", 1, 2},           {DType::kI32, "I32", 1, 4},
    {DType::kI64, "I64", 1, 8},           {DType::kF64, "F64", 1, 8},
    {DType::kIQ1_M, "IQ1_M", 256, 56},    {DType::kBF16, "BF16", 1, 2},
    {DType::kTQ1_0, "TQ1_0", 256, 54},    {DType::kTQ2_0, "TQ2_0", 256, 66},
    {DType::kMXFP4, "MXFP4", 32, 17},     {DType::kNVFP4, "NVFP4", 64, 36},
    {DType::kBool, "BOOL", 1, 1},         {DType::kU8, "U8", 1, 1},
    {DType::kU16, "U16", 1, 2},           {DType::kU32, "U32", 1, 4},
    {DType::kU64, "U64", 1, 8},           {DType::kF8_E4M3, "F8_E4M3", 1, 1},
    {DType::kF8_E5M2, "F8_E5M2", 1, 1},   {DType::kF8_E8M0, "F8_E8M0", 1, 1},
};

constexpr int kLastType = int(DType::kF8_E8M0);

/// Position in kTypes by type number, -1 for numbers in between.
constexpr auto kPosition = [] {
  std::array<int8_t, kLastType + 1> position{};
  for (int8_t& p : position) p = -1;
  for (size_t i = 0; i < std::size(kTypes); ++i) position[size_t(kTypes[i].dtype)] = int8_t(i);
  return position;
}();

}  // namespace

const DTypeInfo* find_dtype(int id) {
  if (id < 0 || id > kLastType || kPosition[size_t(id)] < 0) return nullptr;
  return &kTypes[kPosition[size_t(id)]];
}

const DTypeInfo& info(DType dtype) {
  const DTypeInfo* found = find_dtype(int(dtype));
  CHECK(found != nullptr);
  return *found;
}

std::span<const DTypeInfo> all_dtypes() { return kTypes; }

size_t bytes_of(DType dtype, int64_t n) {
  const DTypeInfo& type = info(dtype);
  CHECK(n >= 0 && n % type.block_elements == 0);
  return size_t(n / type.block_elements) * size_t(type.block_bytes);
}

int64_t TensorView::elements() const {
  int64_t n = 1;
  for (const int64_t dimension : shape) n *= dimension;
  return n;
}

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace sluice
