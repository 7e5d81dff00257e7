// The kernels of matmul.inc for the ISA whose vector names are in scope.
namespace {
#include "kernels/packed_types.inl"
//
#include "kernels/matmul_f32.inl"
#include "kernels/matmul_i8.inl"
}  // namespace

#include "kernels/quantize.inl"

#define PACKED_PLAIN(name, dtype, Values) \
  void matmul_f32_##name(const MatmulF32Args& a) { matmul_f32<DecodePlain<Values>>(a); }
#define PACKED_QUANT(name, dtype, Codes, zero, Scales)      \
  void matmul_f32_##name(const MatmulF32Args& a) {          \
    matmul_f32<DecodeQuant<Quant<Codes, zero, Scales>>>(a); \
  }                                                         \
  void matmul_i8_##name(const MatmulI8Args& a) { matmul_i8<Quant<Codes, zero, Scales>>(a); }
#include "kernels/packed_types.inc"
#undef PACKED_PLAIN
#undef PACKED_QUANT
