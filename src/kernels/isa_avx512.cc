#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/table.h"

#define SLUICE_ISA_NAME "avx512"
namespace sluice::avx512 {
namespace {
#include "kernels/simd/avx512.h"
}  // namespace
#include "kernels/isa_body.inl"
}  // namespace sluice::avx512
