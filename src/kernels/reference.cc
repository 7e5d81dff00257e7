// Every kernel as plain loops with double accumulators: the scalar ISA and the oracle of the
// others.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/table.h"

namespace sluice::scalar {
namespace {

// y = x / sqrt(mean(x^2) + eps) * weight
void rms_norm(const RmsNormArgs& a) {
  for (int64_t r = 0; r < a.n; ++r) {
    const float* x = a.x + r * a.x_stride;
    float* y = a.y + r * a.y_stride;
    double squares = 0;
    for (int64_t i = 0; i < a.dim; ++i) squares += double(x[i]) * x[i];
    const double scale = 1 / std::sqrt(squares / double(a.dim) + a.eps);
    for (int64_t i = 0; i < a.dim; ++i) {
      y[i] = float(x[i] * scale * (a.weight ? a.weight[i] : 1.0f));
    }
  }
}

#include "kernels/reference_elementwise.inl"
// The convolution uses silu of the file above.
#include "kernels/reference_attention.inl"
#include "kernels/reference_ssm.inl"

}  // namespace

// In reference_matmul.cc.
#define KERNEL(name, Args, tolerance) void name(const Args&);
#include "kernels/matmul.inc"
#undef KERNEL

extern const KernelTable kTable;
const KernelTable kTable = {
    "scalar",
#define KERNEL(name, Args, tolerance) name,
#include "kernels/kernels.inc"
#undef KERNEL
};

}  // namespace sluice::scalar
