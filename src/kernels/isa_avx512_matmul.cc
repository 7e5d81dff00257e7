#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/table.h"

namespace sluice::avx512 {
namespace {
#include "kernels/simd/avx512.h"
#include "kernels/simd/avx512_int.h"
/// Rows whose sums fit in registers beside the weights.
constexpr int kRowsF32 = 8, kRowsI8 = 4;
}  // namespace
#include "kernels/matmul.inl"
}  // namespace sluice::avx512
