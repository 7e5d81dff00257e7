// Which decoder belongs to which type.
#include "base/error.h"
#include "weights/decode_blocks.h"
#include "weights/numbers.h"
#include "weights/tensor.h"

namespace sluice {
namespace {

/// n elements of a type that stores each number by itself.
template <typename Bits, typename Convert>
void decode_plain(const uint8_t* data, int64_t n, float* out, Convert convert) {
  for (int64_t i = 0; i < n; ++i) out[i] = convert(load<Bits>(data + size_t(i) * sizeof(Bits)));
}

using BlockDecoder = void (*)(const uint8_t* block, float* out);

BlockDecoder find_block_decoder(DType dtype) {
  switch (dtype) {
    case DType::kQ4_0:
      return decode_q4_0;
    case DType::kQ4_1:
      return decode_q4_1;
    case DType::kQ5_0:
      return decode_q5_0;
    case DType::kQ5_1:
      return decode_q5_1;
    case DType::kQ8_0:
      return decode_q8_0;
    case DType::kQ2_K:
      return decode_q2_k;
    case DType::kQ3_K:
      return decode_q3_k;
    case DType::kQ4_K:
      return decode_q4_k;
    case DType::kQ5_K:
      return decode_q5_k;
    case DType::kQ6_K:
      return decode_q6_k;
    case DType::kQ8_K:
      return decode_q8_k;
    case DType::kIQ2_XXS:
      return decode_iq2_xxs;
    case DType::kIQ2_XS:
      return decode_iq2_xs;
    case DType::kIQ2_S:
      return decode_iq2_s;
    case DType::kIQ3_XXS:
      return decode_iq3_xxs;
    case DType::kIQ3_S:
      return decode_iq3_s;
    case DType::kIQ1_S:
      return decode_iq1_s;
    case DType::kIQ1_M:
      return decode_iq1_m;
    case DType::kIQ4_NL:
      return decode_iq4_nl;
    case DType::kIQ4_XS:
      return decode_iq4_xs;
    case DType::kTQ1_0:
      return decode_tq1_0;
    case DType::kTQ2_0:
      return decode_tq2_0;
    case DType::kMXFP4:
      return decode_mxfp4;
    case DType::kNVFP4:
      return decode_nvfp4;
    default:
      return nullptr;
  }
}

}  // namespace

void decode_to_f32(DType dtype, const std::byte* data, int64_t n, float* out) {
  const DTypeInfo& type = info(dtype);
  CHECK(n >= 0 && n % type.block_elements == 0);
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(data);
  switch (dtype) {
    case DType::kF32:
      return decode_plain<float>(bytes, n, out, [](float x) { return x; });
    case DType::kF64:
      return decode_plain<double>(bytes, n, out, [](double x) { return float(x); });
    case DType::kF16:
      return decode_plain<uint16_t>(bytes, n, out, f16_to_f32);
    case DType::kBF16:
      return decode_plain<uint16_t>(bytes, n, out, bf16_to_f32);
    case DType::kF8_E4M3:
      return decode_plain<uint8_t>(bytes, n, out, f8_e4m3_to_f32);
    case DType::kF8_E5M2:
      return decode_plain<uint8_t>(bytes, n, out, f8_e5m2_to_f32);
    case DType::kF8_E8M0:
      return decode_plain<uint8_t>(bytes, n, out, f8_e8m0_to_f32);
    default:
      break;
  }
  const BlockDecoder decode = find_block_decoder(dtype);
  if (!decode) {
    throw Error(ErrorCode::kUnsupported, "expected a type that holds weights, got {}", type.name);
  }
  for (int64_t i = 0; i < n / type.block_elements; ++i) {
    decode(bytes + i * type.block_bytes, out + i * type.block_elements);
  }
}

}  // namespace sluice
