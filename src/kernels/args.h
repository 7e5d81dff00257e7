// Arguments of every kernel. Plain structs over fixed-width types only: this header is compiled
// into the ISA files, which must not share inline code with the rest of the program.
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
  int8_t* q;                                   // (n, k)
  float* scale;                                // (n, k / 32)
  int32_t* sum;                                // (n, k / 16): sums of q over 16 columns
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
  const float* x;  // (n, k)
  int64_t n, x_stride;
  float* y;  // (n, 16 * n_panels)
  int64_t y_stride;
};

struct MatmulI8Args {
  const void* panels;
  int64_t panel_bytes;
  int64_t n_panels, k;
  I8Rows x;  // (n, k)
  int64_t n;
  float* y;  // (n, 16 * n_panels)
  int64_t y_stride;
};

/// RMS norm of every group of `dim` values on its own: y = g / sqrt(mean(g^2) + eps) * weight,
/// where g = x, or x * silu(gate) if there is a gate. Heads of q and k: weight_step 0; Mamba-2:
/// dim.
struct GroupNormArgs {
  const float* x;       // (n, n_groups * dim)
  const float* gate;    // (n, n_groups * dim); nullptr: none
  const float* weight;  // group g: weight[g * weight_step + 0 .. dim)
  float* y;             // (n, n_groups * dim); may be x
  int64_t n, n_groups, dim, weight_step, x_stride, gate_stride, y_stride;
  float eps;
};

/// Rotates pairs (i, i + rotary_dim / 2) of every head, in place; dims from rotary_dim on stay.
struct RopeArgs {
  float* x;          // (n, n_heads * head_dim)
  const float* cos;  // (n, rotary_dim / 2)
  const float* sin;  // (n, rotary_dim / 2)
  int64_t n, n_heads, head_dim, rotary_dim, x_stride, table_stride;
};

/// y += scale * x
struct AddScaledArgs {
  const float* x;  // (n, dim)
  float* y;        // (n, dim)
  int64_t n, dim, x_stride, y_stride;
  float scale;
};

/// y += bias in every row
struct AddBiasArgs {
  const float* bias;  // (dim)
  float* y;           // (n, dim)
  int64_t n, dim, y_stride;
};

/// y = silu(gate) * up
struct SiluMulArgs {
  const float* gate;  // (n, dim)
  const float* up;    // (n, dim)
  float* y;           // (n, dim); may be gate or up
  int64_t n, dim, gate_stride, up_stride, y_stride;
};

/// y = scale * x
struct ScaleArgs {
  const float* x;  // (n, dim)
  float* y;        // (n, dim); may be x
  int64_t n, dim, x_stride, y_stride;
  float scale;
};

/// y = e^x; results below 2^-126 are zero.
struct ExpArgs {
  const float* x;  // (n)
  float* y;        // (n); may be x
  int64_t n;
};

/// The largest value and the lowest index that holds it. NaN never wins; n = 0: -inf and 0.
struct ArgmaxArgs {
  const float* x;  // (n)
  int64_t n;
  float* value;
  int64_t* index;
};

/// sum of e^(x - max), for log-sum-exp = max + log(sum).
struct SumExpArgs {
  const float* x;  // (n)
  int64_t n;
  float max;
  double* sum;
};

/// Positions of one page of keys and values.
inline constexpr int kPagePositions = 32;
/// Attention sums over spans of this many positions, counted from position 0, and merges the spans
/// in order: the same bits however rows, heads and spans are split.
inline constexpr int kSpanPositions = 256;
inline constexpr int kMaxHeadDim = 512;

/// Keys and values of one block. Elements are f32 or f16, as the kernel's name says.
///   page of k: [n_kv_heads][2][head_dim][16 positions]
///   page of v: [n_kv_heads][32 positions][v_head_dim rounded up to 16]
struct KvPages {
  void* k;  // page p at k + p * k_page_bytes
  void* v;
  int64_t k_page_bytes, v_page_bytes;
  const int32_t* page_of;                    // page of positions [32 i, 32 i + 32) of the sequence
  int64_t n_kv_heads, head_dim, v_head_dim;  // head dims at most kMaxHeadDim
};

/// Writes rows at positions [position, position + n). f16: to nearest even, kept within +-65504.
struct KvStoreArgs {
  KvPages pages;
  const float* k;  // (n, n_kv_heads * head_dim)
  const float* v;  // (n, n_kv_heads * v_head_dim)
  int64_t n, position, k_stride, v_stride;
};

/// y = softmax(scale q K^T) V for rows of one sequence at positions [position, position + n). Row
/// at position p sees (p - window, p]; window 0: all up to p. Head h reads kv head h / (n_heads /
/// n_kv_heads). Computes rows [first_row, last_row) of kv heads [first_head, last_head).
///
/// With partial == nullptr the call writes y. Else it computes only spans [first_span, last_span)
/// and writes one partial result per span; attend_merge (same arguments) makes y of them. A partial
/// is partial_stride floats, max, sum and from 16 on the weighted values, at
/// ((row * n_heads + head) * n_spans + span - first span that row 0 sees).
struct AttendArgs {
  KvPages pages;
  const float* q;  // (n, n_heads * head_dim)
  float* y;        // (n, n_heads * v_head_dim)
  int64_t n, position, n_heads, window, q_stride, y_stride;
  float scale;
  int64_t first_row, last_row, first_head, last_head;
  float* partial;
  int64_t partial_stride;  // at least 16 + v_head_dim rounded up to 16
  int64_t n_spans;         // that the rows see together
  int64_t first_span, last_span;
};

/// Causal depthwise convolution along the rows, then silu:
/// y[r][c] = silu(bias[c] + sum over t of weight[c][t] * x[r - taps + 1 + t][c])
/// Rows before the first come from the tail, which holds the last taps - 1 inputs, oldest first.
struct ConvArgs {
  const float* x;        // (n, channels)
  const float* weight;   // (channels, taps)
  const float* bias;     // (channels); nullptr: zero
  const float* tail_in;  // (taps - 1, channels); nullptr: zero
  float* tail_out;       // (taps - 1, channels); may be tail_in
  float* y;              // (n, channels); not x
  int64_t n, channels, taps, x_stride, y_stride, tail_stride;  // taps 2 to 16
};

/// Mamba-2 recurrence (arXiv 2405.21060, section 6), token by token, for heads [first_head,
/// last_head):
///   dt' = clamp(softplus(dt + dt_bias), dt_min, dt_max)
///   S   = exp(dt' A) S + dt' B x^T
///   y   = C S + D x
/// Head h reads group h / (n_heads / n_groups) of B and C.
struct SsmScanArgs {
  const float* x;         // (n, n_heads * head_dim)
  const float* B;         // (n, n_groups * d_state)
  const float* C;         // (n, n_groups * d_state)
  const float* dt;        // (n, n_heads)
  const float* dt_bias;   // (n_heads)
  const float* A;         // (n_heads), negative
  const float* D;         // (n_heads)
  const float* state_in;  // (n_heads, d_state, head_dim); nullptr: zero
  float* state_out;       // (n_heads, d_state, head_dim); may be state_in
  float* y;               // (n, n_heads * head_dim)
  int64_t n, n_heads, head_dim, d_state, n_groups, first_head, last_head;
  int64_t x_stride, B_stride, C_stride, dt_stride, y_stride;
  float dt_min, dt_max;
};

}  // namespace sluice
