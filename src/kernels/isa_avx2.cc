#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/table.h"

#define SLUICE_ISA_NAME "avx2"
namespace sluice::avx2 {
namespace {
#include "kernels/simd/avx2.h"
}  // namespace
#include "kernels/isa_body.inl"
}  // namespace sluice::avx2
