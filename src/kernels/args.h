// Arguments of every kernel. Plain structs over fixed-width types only: this header is compiled into
// the ISA files, which must not share inline code with the rest of the program.
#pragma once

#include <stdint.h>

namespace sluice {

/// Rows of a weight matrix that one panel interleaves, on every ISA.
inline constexpr int kPanelRows = 16;
/// Columns that share one activation scale.
inline constexpr int kQuantBlock = 32;

/// n rows of f32 with a distance of `stride` floats (a multiple of 16) between them.
struct RmsNormArgs {
  const float* x;       // (n, dim)
  const float* weight;  // (dim); nullptr: ones
  float* y;             // (n, dim); may be x
  int64_t n, dim, x_stride, y_stride;
  float eps;
};

/// Activations quantised to 8 bits: x[i] ~ scale[i / 32] * q[i].
struct I8Rows {
  int8_t* q;       // (n, k)
  float* scale;    // (n, k / 32)
  int32_t* sum;    // (n, k / 16): sums of q over 16 columns
  int64_t q_stride, scale_stride, sum_stride;  // in elements, q_stride a multiple of 64
};

struct QuantizeArgs {
  const float* x;  // (n, k)
  I8Rows out;
  int64_t n, k, x_stride;  // k a multiple of 32
};

/// y[r][p * 16 + lane] = sum over k of W[p * 16 + lane][k] x[r][k], for `n_panels` panels in a row.
struct MatmulF32Args {
  const void* panels;   // first panel
  int64_t panel_bytes;  // distance between panels
  int64_t n_panels, k;
  const float* x;       // (n, k)
  int64_t n, x_stride;
  float* y;             // (n, 16 * n_panels)
  int64_t y_stride;
};

struct MatmulI8Args {
  const void* panels;
  int64_t panel_bytes;
  int64_t n_panels, k;
  I8Rows x;             // (n, k)
  int64_t n;
  float* y;             // (n, 16 * n_panels)
  int64_t y_stride;
};

}  // namespace sluice
