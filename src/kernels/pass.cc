#include "kernels/pass.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace sluice {
namespace {

/// Rows of cheap row-wise work that are worth handing to another thread.
int64_t row_grain(int64_t dim) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(dim, 1)); }

/// Panels per piece of a loop over `n_panels`: small enough for an even share, large enough that
/// taking a piece costs little.
int64_t panel_grain(int64_t n_panels, int threads) {
  return std::clamp<int64_t>(n_panels / (int64_t(threads) * 8), 1, 16);
}

I8Rows offset_rows(const I8Rows& q, int64_t row) {
  I8Rows out = q;
  out.q += row * q.q_stride;
  out.scale += row * q.scale_stride;
  out.sum += row * q.sum_stride;
  return out;
}

}  // namespace

Pass::Pass(const KernelTable& kernels, ThreadPool& pool, bool i8)
    : kernels_(kernels), pool_(pool), i8_(i8) {}

void Pass::begin(std::span<const int32_t> positions, std::span<const Segment> segments) {
  positions_ = positions;
  segments_ = segments;
  for (RopeTable& table : rope_tables_) table.valid = false;
}

void Pass::bind(KvView kv, StateView state) {
  kv_ = kv;
  state_ = state;
}

Tensor Pass::tensor(int64_t n, int64_t dim) {
  const int64_t stride = (dim + 15) / 16 * 16;
  Tensor t{.data = arena_.array<float>(n * stride), .n = n, .dim = dim, .stride = stride};
  t.quantized = arena_.array<I8Rows>(1);
  *t.quantized = {};
  return t;
}

Tensor Pass::columns(const Tensor& x, int64_t first, int64_t dim) {
  return {.data = x.data + first, .n = x.n, .dim = dim, .stride = x.stride, .quantized = nullptr};
}

// ---- Norms and element-wise work ----

Tensor Pass::rms_norm(const Tensor& x, const std::vector<float>& weight, float eps) {
  const Tensor y = tensor(x.n, x.dim);
  const I8Rows q = i8_ && x.dim % kQuantBlock == 0 ? allocate_i8(y) : I8Rows{};
  pool_.parallel_for(x.n, row_grain(x.dim), [&](int64_t first, int64_t last, int) {
    kernels_.rms_norm({.x = x.row(first),
                       .weight = weight.data(),
                       .y = y.row(first),
                       .n = last - first,
                       .dim = x.dim,
                       .x_stride = x.stride,
                       .y_stride = y.stride,
                       .eps = eps});
    if (q.q) quantize_rows(y, q, first, last);
  });
  return y;
}

void Pass::rms_norm_heads(Tensor& x, int head_dim, const std::vector<float>& weight, float eps) {
  pool_.parallel_for(x.n, row_grain(x.dim), [&](int64_t first, int64_t last, int) {
    kernels_.rms_norm_groups({.x = x.row(first),
                              .gate = nullptr,
                              .weight = weight.data(),
                              .y = x.row(first),
                              .n = last - first,
                              .n_groups = x.dim / head_dim,
                              .dim = head_dim,
                              .weight_step = 0,
                              .x_stride = x.stride,
                              .gate_stride = 0,
                              .y_stride = x.stride,
                              .eps = eps});
  });
}

Tensor Pass::gated_rms_norm(const Tensor& x, const Tensor& z, const std::vector<float>& weight,
                            float eps, int64_t group) {
  const Tensor y = tensor(x.n, x.dim);
  pool_.parallel_for(x.n, row_grain(x.dim), [&](int64_t first, int64_t last, int) {
    kernels_.rms_norm_groups({.x = x.row(first),
                              .gate = z.row(first),
                              .weight = weight.data(),
                              .y = y.row(first),
                              .n = last - first,
                              .n_groups = x.dim / group,
                              .dim = group,
                              .weight_step = group,
                              .x_stride = x.stride,
                              .gate_stride = z.stride,
                              .y_stride = y.stride,
                              .eps = eps});
  });
  return y;
}

void Pass::add_bias(Tensor& x, const std::vector<float>& bias) {
  if (bias.empty()) return;
  kernels_.add_bias(
      {.bias = bias.data(), .y = x.data, .n = x.n, .dim = x.dim, .y_stride = x.stride});
}

void Pass::scale(Tensor& x, float factor) {
  kernels_.scale({.x = x.data,
                  .y = x.data,
                  .n = x.n,
                  .dim = x.dim,
                  .x_stride = x.stride,
                  .y_stride = x.stride,
                  .scale = factor});
}

const Pass::RopeTable& Pass::rope_table(const Rope& rope) {
  auto found = std::find_if(rope_tables_.begin(), rope_tables_.end(), [&](const RopeTable& t) {
    return t.inv_freq == rope.inv_freq && t.scale == rope.scale;
  });
  if (found == rope_tables_.end()) {
    found = rope_tables_.insert(found, {rope.inv_freq, rope.scale, {}, {}, false});
  }
  RopeTable& table = *found;
  if (table.valid) return table;
  const int64_t n = int64_t(positions_.size()), half = int64_t(rope.inv_freq.size());
  table.cos.resize(size_t(n * half));
  table.sin.resize(size_t(n * half));
  pool_.parallel_for(n, 16, [&](int64_t first, int64_t last, int) {
    for (int64_t r = first; r < last; ++r) {
      for (int64_t i = 0; i < half; ++i) {
        const double angle = double(positions_[size_t(r)]) * rope.inv_freq[size_t(i)];
        table.cos[size_t(r * half + i)] = float(std::cos(angle) * rope.scale);
        table.sin[size_t(r * half + i)] = float(std::sin(angle) * rope.scale);
      }
    }
  });
  table.valid = true;
  return table;
}

void Pass::rope(Tensor& x, int head_dim, const Rope& rope) {
  const RopeTable& table = rope_table(rope);
  const int64_t half = int64_t(rope.inv_freq.size());
  pool_.parallel_for(x.n, row_grain(x.dim), [&](int64_t first, int64_t last, int) {
    kernels_.rope({.x = x.row(first),
                   .cos = table.cos.data() + first * half,
                   .sin = table.sin.data() + first * half,
                   .n = last - first,
                   .n_heads = x.dim / head_dim,
                   .head_dim = head_dim,
                   .rotary_dim = 2 * half,
                   .x_stride = x.stride,
                   .table_stride = half});
  });
}

// ---- Matrices ----

I8Rows Pass::allocate_i8(const Tensor& x) {
  I8Rows q{.q = nullptr,
           .scale = nullptr,
           .sum = nullptr,
           .q_stride = (x.dim + 63) / 64 * 64,
           .scale_stride = x.dim / kQuantBlock,
           .sum_stride = x.dim / 16};
  q.q = arena_.array<int8_t>(x.n * q.q_stride);
  q.scale = arena_.array<float>(x.n * q.scale_stride);
  q.sum = arena_.array<int32_t>(x.n * q.sum_stride);
  if (x.quantized) *x.quantized = q;
  return q;
}

void Pass::quantize_rows(const Tensor& x, const I8Rows& q, int64_t first, int64_t last) const {
  kernels_.quantize_i8({.x = x.row(first),
                        .out = offset_rows(q, first),
                        .n = last - first,
                        .k = x.dim,
                        .x_stride = x.stride});
}

Pass::Input Pass::input(const Tensor& x, const PackedMatrix& w) {
  CHECK(x.dim == w.cols);
  if (!i8_ || !has_i8_kernel(w.dtype)) return {x, {}};
  if (x.quantized && x.quantized->q) return {x, *x.quantized};
  const I8Rows q = allocate_i8(x);
  pool_.parallel_for(x.n, row_grain(x.dim),
                     [&](int64_t first, int64_t last, int) { quantize_rows(x, q, first, last); });
  return {x, q};
}

Pass::Input Pass::Input::rows(int64_t first, int64_t n) const {
  Input part = *this;
  part.x.data = x.row(first);
  part.x.n = n;
  part.x.quantized = nullptr;
  if (q.q) part.q = offset_rows(q, first);
  return part;
}

void Pass::matmul_panels(const Input& in, const PackedMatrix& w, int64_t first, int64_t last,
                         float* y, int64_t y_stride) const {
  const std::byte* panels = w.data + size_t(first) * w.panel_bytes;
  if (in.q.q && has_i8_kernel(w.dtype)) {
    matmul_i8_kernel(kernels_, w.dtype)({.panels = panels,
                                         .panel_bytes = int64_t(w.panel_bytes),
                                         .n_panels = last - first,
                                         .k = w.cols,
                                         .x = in.q,
                                         .n = in.x.n,
                                         .y = y,
                                         .y_stride = y_stride});
  } else {
    matmul_f32_kernel(kernels_, w.dtype)({.panels = panels,
                                          .panel_bytes = int64_t(w.panel_bytes),
                                          .n_panels = last - first,
                                          .k = w.cols,
                                          .x = in.x.data,
                                          .n = in.x.n,
                                          .x_stride = in.x.stride,
                                          .y = y,
                                          .y_stride = y_stride});
  }
}

void Pass::matmul_each(const Tensor& x, std::span<const PackedMatrix* const> w,
                       std::span<Tensor> y) {
  Input inputs[4];
  int64_t n_panels = 0;
  CHECK(w.size() <= 4);
  for (size_t i = 0; i < w.size(); ++i) {
    inputs[i] = input(x, *w[i]);
    y[i] = tensor(x.n, w[i]->rows);
    n_panels += w[i]->n_panels();
  }
  pool_.parallel_for(n_panels, panel_grain(n_panels, pool_.size()),
                     [&](int64_t first, int64_t last, int) {
                       int64_t base = 0;
                       for (size_t i = 0; i < w.size(); ++i) {
                         const int64_t end = base + w[i]->n_panels();
                         const int64_t from = std::max(first, base), to = std::min(last, end);
                         if (from < to) {
                           matmul_panels(inputs[i], *w[i], from - base, to - base,
                                         y[i].data + (from - base) * kPanelRows, y[i].stride);
                         }
                         base = end;
                       }
                     });
}

Tensor Pass::matmul(const Tensor& x, const PackedMatrix& w) {
  const PackedMatrix* const matrices[] = {&w};
  Tensor y[1];
  matmul_each(x, matrices, y);
  return y[0];
}

Tensor Pass::matmul_fine(const Tensor& x, const PackedMatrix& w) {
  if (!i8_ || !has_i8_kernel(w.dtype)) return matmul(x, w);
  // Rows 2r and 2r + 1: row r in 8 bits, and in 8 bits again what that leaves.
  const Tensor parts = tensor(2 * x.n, x.dim);
  const I8Rows q = allocate_i8(parts);
  for (int64_t r = 0; r < x.n; ++r) {
    float* const whole = parts.row(2 * r);
    float* const rest = parts.row(2 * r + 1);
    std::memcpy(whole, x.row(r), size_t(x.dim) * sizeof(float));
    quantize_rows(parts, q, 2 * r, 2 * r + 1);
    const I8Rows done = offset_rows(q, 2 * r);
    for (int64_t i = 0; i < x.dim; ++i) {
      rest[i] = whole[i] - done.scale[i / kQuantBlock] * float(done.q[i]);
    }
    quantize_rows(parts, q, 2 * r + 1, 2 * r + 2);
  }
  const Tensor sums = matmul(parts, w);  // (2n, w.rows)
  const Tensor y{.data = sums.data, .n = x.n, .dim = w.rows, .stride = 2 * sums.stride};
  kernels_.add_scaled({.x = sums.row(1),
                       .y = y.data,
                       .n = x.n,
                       .dim = w.rows,
                       .x_stride = y.stride,
                       .y_stride = y.stride,
                       .scale = 1});
  return y;
}

void Pass::add_matmul(Tensor& x, const Tensor& h, const PackedMatrix& w, float scale) {
  const Arena::Mark mark = arena_.mark();
  const Input in = input(h, w);
  const Tensor y = tensor(h.n, w.rows);
  pool_.parallel_for(w.n_panels(), panel_grain(w.n_panels(), pool_.size()),
                     [&](int64_t first, int64_t last, int) {
                       const int64_t column = first * kPanelRows;
                       matmul_panels(in, w, first, last, y.data + column, y.stride);
                       const int64_t dim = std::min(last * kPanelRows, w.rows) - column;
                       kernels_.add_scaled({.x = y.data + column,
                                            .y = x.data + column,
                                            .n = h.n,
                                            .dim = dim,
                                            .x_stride = y.stride,
                                            .y_stride = x.stride,
                                            .scale = scale});
                     });
  // What input() quantised for h lies above the mark.
  if (h.quantized && h.quantized->q == in.q.q) *h.quantized = {};
  arena_.release(mark);
}

Tensor Pass::silu_matmul(const Tensor& h, const PackedMatrix& gate, const PackedMatrix& up,
                         const std::vector<float>& gate_bias, const std::vector<float>& up_bias) {
  const Input gate_in = input(h, gate), up_in = input(h, up);
  const Tensor y = tensor(h.n, gate.rows), u = tensor(h.n, up.rows);
  pool_.parallel_for(gate.n_panels(), panel_grain(gate.n_panels(), pool_.size()),
                     [&](int64_t first, int64_t last, int) {
                       const int64_t column = first * kPanelRows;
                       const int64_t dim = std::min(last * kPanelRows, gate.rows) - column;
                       matmul_panels(gate_in, gate, first, last, y.data + column, y.stride);
                       matmul_panels(up_in, up, first, last, u.data + column, u.stride);
                       const auto add = [&](const std::vector<float>& bias, const Tensor& t) {
                         if (bias.empty()) return;
                         kernels_.add_bias({.bias = bias.data() + column,
                                            .y = t.data + column,
                                            .n = t.n,
                                            .dim = dim,
                                            .y_stride = t.stride});
                       };
                       add(gate_bias, y);
                       add(up_bias, u);
                       kernels_.silu_mul({.gate = y.data + column,
                                          .up = u.data + column,
                                          .y = y.data + column,
                                          .n = h.n,
                                          .dim = dim,
                                          .gate_stride = y.stride,
                                          .up_stride = u.stride,
                                          .y_stride = y.stride});
                     });
  return y;
}

}  // namespace sluice
