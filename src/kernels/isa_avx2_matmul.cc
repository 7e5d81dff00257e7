#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/table.h"

namespace sluice::avx2 {
namespace {
#include "kernels/simd/avx2.h"
#include "kernels/simd/avx2_int.h"
/// Rows whose sums fit in registers beside the weights.
constexpr int kRowsF32 = 4, kRowsI8 = 2;
}  // namespace
#include "kernels/matmul.inl"
}  // namespace sluice::avx2
