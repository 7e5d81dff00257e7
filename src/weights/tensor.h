// Element types of checkpoint files, and typed views of the tensors in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// Values are GGUF's type numbers (ggml tensor types); safetensors types that GGUF lacks start at
/// 100.
// clang-format off
enum class DType : uint8_t {
  kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ4_1 = 3, kQ5_0 = 6, kQ5_1 = 7, kQ8_0 = 8,
  kQ2_K = 10, kQ3_K = 11, kQ4_K = 12, kQ5_K = 13, kQ6_K = 14, kQ8_K = 15,
  kIQ2_XXS = 16, kIQ2_XS = 17, kIQ3_XXS = 18, kIQ1_S = 19, kIQ4_NL = 20, kIQ3_S = 21,
  kIQ2_S = 22, kIQ4_XS = 23, kI8 = 24, kI16 = 25, kI32 = 26, kI64 = 27, kF64 = 28,
  kIQ1_M = 29, kBF16 = 30, kTQ1_0 = 34, kTQ2_0 = 35, kMXFP4 = 39, kNVFP4 = 40,
  kBool = 100, kU8, kU16, kU32, kU64, kF8_E4M3, kF8_E5M2, kF8_E8M0,
};
// clang-format on

struct DTypeInfo {
  DType dtype;
  const char* name;    // as in GGUF / safetensors: "Q4_1", "BF16"
  int block_elements;  // weights per block; 1 for plain types
  int block_bytes;
};

/// nullptr for a number that is not a known type.
const DTypeInfo* find_dtype(int id);
const DTypeInfo& info(DType dtype);
/// Every type, in the order of the enum.
std::span<const DTypeInfo> all_dtypes();

/// Bytes of `n` contiguous elements; n must be a multiple of the type's block_elements.
size_t bytes_of(DType dtype, int64_t n);

/// Decodes `n` contiguous elements (whole blocks) of any type that can hold weights to f32, exactly
/// as the format defines them. Throws kUnsupported for types without a decoder (I8, BOOL, ...).
void decode_to_f32(DType dtype, const std::byte* data, int64_t n, float* out);

/// One tensor in a mapped file. Row-major; shape[0] is the outermost dimension (the reverse of
/// GGUF's order).
struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;
  size_t bytes = 0;

  int64_t elements() const;
};

std::string shape_text(std::span<const int64_t> shape);  // "(576, 192)"

}  // namespace sluice
