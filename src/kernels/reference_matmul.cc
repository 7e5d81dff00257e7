// The kernels of matmul.inc as plain loops with double accumulators.
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/packed_layout.h"
#include "kernels/table.h"

namespace sluice::scalar {

// Per block of 32: scale = max|x| / 127, q = round(x * (127 / max|x|)), ties to even; sums of q.
// Blocks below 1e-30 become zero, blocks with an infinity or NaN zero with the scale NaN.
void quantize_i8(const QuantizeArgs& a) {
  for (int64_t r = 0; r < a.n; ++r) {
    for (int64_t block = 0; block < a.k / kQuantBlock; ++block) {
      const float* x = a.x + r * a.x_stride + block * kQuantBlock;
      int8_t* q = a.out.q + r * a.out.q_stride + block * kQuantBlock;
      int32_t* sums = a.out.sum + r * a.out.sum_stride + block * 2;
      float& scale = a.out.scale[r * a.out.scale_stride + block];
      float largest = 0;
      bool finite = true;
      for (int i = 0; i < kQuantBlock; ++i) {
        finite = finite && std::isfinite(x[i]);
        largest = std::fmax(largest, std::fabs(x[i]));
      }
      const bool zero = !finite || largest < 1e-30f;
      scale = !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 0.0f : largest / 127.0f;
      sums[0] = sums[1] = 0;
      for (int i = 0; i < kQuantBlock; ++i) {
        q[i] = zero ? int8_t(0) : int8_t(std::nearbyint(x[i] * (127.0f / largest)));
        sums[i / 16] += q[i];
      }
    }
  }
}

namespace {

// y[r][row] = sum over k of w[row][k] x[r][k]
template <class Values>
void matmul_f32_plain(const MatmulF32Args& a) {
  for (int64_t row = 0; row < a.n_panels * kPanelRows; ++row) {
    const uint8_t* panel = static_cast<const uint8_t*>(a.panels) + row / kPanelRows * a.panel_bytes;
    for (int64_t r = 0; r < a.n; ++r) {
      double sum = 0;
      for (int64_t k = 0; k < a.k; ++k) {
        const float w = Values::get(panel + k * Values::kBytes, int(row % kPanelRows));
        sum += double(w) * a.x[r * a.x_stride + k];
      }
      a.y[r * a.y_stride + row] = float(sum);
    }
  }
}

// y[r][row] = sum over k of (scale * (code - zero) + min) x[r][k], the bracket rounded to f32
template <class Type>
void matmul_f32(const MatmulF32Args& a) {
  for (int64_t row = 0; row < a.n_panels * kPanelRows; ++row) {
    const int lane = int(row % kPanelRows);
    const uint8_t* panel = static_cast<const uint8_t*>(a.panels) + row / kPanelRows * a.panel_bytes;
    for (int64_t r = 0; r < a.n; ++r) {
      double sum = 0;
      for (int64_t k = 0; k < a.k; k += Type::kBlock) {
        const layout::Scale s = Type::scale(panel, a.k, k, lane);
        for (int64_t i = k; i < k + Type::kBlock; ++i) {
          const float w = s.scale * float(Type::code(panel, i, lane)) + s.min;
          sum += double(w) * a.x[r * a.x_stride + i];
        }
      }
      a.y[r * a.y_stride + row] = float(sum);
    }
  }
}

// y[r][row] = sum over blocks of x_scale * (scale * sum (code - zero) q + min * sum q)
template <class Type>
void matmul_i8(const MatmulI8Args& a) {
  for (int64_t row = 0; row < a.n_panels * kPanelRows; ++row) {
    const int lane = int(row % kPanelRows);
    const uint8_t* panel = static_cast<const uint8_t*>(a.panels) + row / kPanelRows * a.panel_bytes;
    for (int64_t r = 0; r < a.n; ++r) {
      double sum = 0;
      for (int64_t k = 0; k < a.k; k += Type::kBlock) {
        int64_t dot = 0, q_sum = 0;
        for (int64_t i = k; i < k + Type::kBlock; ++i) {
          const int q = a.x.q[r * a.x.q_stride + i];
          dot += Type::code(panel, i, lane) * q;
          q_sum += q;
        }
        const layout::Scale s = Type::scale(panel, a.k, k, lane);
        sum += double(a.x.scale[r * a.x.scale_stride + k / kQuantBlock]) *
               (double(s.scale) * double(dot) + double(s.min) * double(q_sum));
      }
      a.y[r * a.y_stride + row] = float(sum);
    }
  }
}

}  // namespace

#define PACKED_PLAIN(name, dtype, Values) \
  void matmul_f32_##name(const MatmulF32Args& a) { matmul_f32_plain<layout::Values>(a); }
#define PACKED_QUANT(name, dtype, Codes, zero, Scales)                 \
  void matmul_f32_##name(const MatmulF32Args& a) {                     \
    matmul_f32<layout::Quant<layout::Codes, zero, layout::Scales>>(a); \
  }                                                                    \
  void matmul_i8_##name(const MatmulI8Args& a) {                       \
    matmul_i8<layout::Quant<layout::Codes, zero, layout::Scales>>(a);  \
  }
#include "kernels/packed_types.inc"
#undef PACKED_PLAIN
#undef PACKED_QUANT

}  // namespace sluice::scalar
