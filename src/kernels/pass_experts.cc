// The operations of Pass for mixtures of experts.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "kernels/pass.h"
#include "kernels/routing.h"

namespace sluice {

Routing Pass::route(const Tensor& logits, int k, RouterKind kind, bool renormalise) {
  Routing routing{.k = k,
                  .experts = arena_.array<int32_t>(logits.n * k),
                  .weights = arena_.array<float>(logits.n * k)};
  for (int64_t r = 0; r < logits.n; ++r) {
    const std::span<const float> row(logits.row(r), size_t(logits.dim));
    const std::span<int32_t> experts(routing.experts + r * k, size_t(k));
    const std::span<float> weights(routing.weights + r * k, size_t(k));
    if (kind == RouterKind::kSoftmaxThenTopK) {
      route_softmax_then_top_k(row, renormalise, experts, weights);
    } else {
      route_top_k_then_softmax(row, experts, weights);
    }
  }
  return routing;
}

/// Rows sorted by expert: the rows of expert e are entries [begin[e], begin[e + 1]); entry i is
/// rank `slot[i] % k` of row `slot[i] / k`.
struct Pass::ExpertRows {
  int64_t* begin;   // (n_experts + 1)
  int32_t* slot;    // (n * k)
  int32_t* active;  // experts with rows
  int64_t n_active;
};

Pass::ExpertRows Pass::group_by_expert(const Routing& routing, int64_t n, int64_t n_experts) {
  ExpertRows rows{.begin = arena_.array<int64_t>(n_experts + 1),
                  .slot = arena_.array<int32_t>(n * routing.k),
                  .active = arena_.array<int32_t>(n_experts),
                  .n_active = 0};
  int64_t* const next = arena_.array<int64_t>(n_experts + 1);
  std::fill_n(next, n_experts + 1, 0);
  for (int64_t i = 0; i < n * routing.k; ++i) ++next[routing.experts[i] + 1];
  for (int64_t e = 0; e < n_experts; ++e) {
    if (next[e + 1] > 0) rows.active[rows.n_active++] = int32_t(e);
    next[e + 1] += next[e];
  }
  std::copy_n(next, n_experts + 1, rows.begin);
  for (int64_t i = 0; i < n * routing.k; ++i) {
    rows.slot[next[routing.experts[i]]++] = int32_t(i);
  }
  return rows;
}

void Pass::add_experts(Tensor& x, const Tensor& h, const Routing& routing,
                       const std::vector<PackedMatrix>& gate, const std::vector<PackedMatrix>& up,
                       const std::vector<PackedMatrix>& down, float scale) {
  const Arena::Mark mark = arena_.mark();
  const int64_t k = routing.k, inner = gate.front().rows, dim = down.front().rows;
  const ExpertRows rows = group_by_expert(routing, h.n, int64_t(gate.size()));

  // Row i of the input and of all that follows belongs to entry i of `rows`.
  Input in;
  if (h.n == 1) {
    in = input(h, gate.front());
    in.x.stride = in.q.q_stride = in.q.scale_stride = in.q.sum_stride = 0;
  } else {
    const Tensor gathered = tensor(h.n * k, h.dim);
    for (int64_t i = 0; i < gathered.n; ++i) {
      std::memcpy(gathered.row(i), h.row(rows.slot[i] / k), size_t(h.dim) * sizeof(float));
    }
    in = input(gathered, gate.front());
  }
  const Tensor g = tensor(h.n * k, inner), u = tensor(h.n * k, inner);
  const int64_t inner_panels = gate.front().n_panels();
  const auto for_each_expert = [&](int64_t n_panels, auto&& body) {
    pool_.parallel_for(rows.n_active * n_panels, std::min<int64_t>(n_panels, 4),
                       [&](int64_t first, int64_t last, int) {
                         while (first < last) {
                           const int64_t a = first / n_panels, panel = first % n_panels;
                           const int64_t end = std::min(n_panels, panel + last - first);
                           body(rows.active[a], panel, end);
                           first += end - panel;
                         }
                       });
  };
  for_each_expert(inner_panels, [&](int32_t e, int64_t first, int64_t last) {
    const int64_t row = rows.begin[e], n = rows.begin[e + 1] - row;
    const Input part = in.rows(row, n);
    const int64_t column = first * kPanelRows;
    float* const gate_out = g.row(row) + column;
    float* const up_out = u.row(row) + column;
    matmul_panels(part, gate[size_t(e)], first, last, gate_out, g.stride);
    matmul_panels(part, up[size_t(e)], first, last, up_out, u.stride);
    kernels_.silu_mul({.gate = gate_out,
                       .up = up_out,
                       .y = gate_out,
                       .n = n,
                       .dim = std::min(last * kPanelRows, inner) - column,
                       .gate_stride = g.stride,
                       .up_stride = u.stride,
                       .y_stride = g.stride});
  });
  const Input middle = input(g, down.front());
  const Tensor y = tensor(h.n * k, dim);
  for_each_expert(down.front().n_panels(), [&](int32_t e, int64_t first, int64_t last) {
    const int64_t row = rows.begin[e], n = rows.begin[e + 1] - row;
    matmul_panels(middle.rows(row, n), down[size_t(e)], first, last,
                  y.row(row) + first * kPanelRows, y.stride);
  });

  // Each row adds its experts in order of rank, whatever the other rows chose.
  int32_t* const entry_of = arena_.array<int32_t>(h.n * k);
  for (int64_t i = 0; i < h.n * k; ++i) entry_of[rows.slot[i]] = int32_t(i);
  for (int64_t i = 0; i < h.n * k; ++i) {
    kernels_.add_scaled({.x = y.row(entry_of[i]),
                         .y = x.row(i / k),
                         .n = 1,
                         .dim = dim,
                         .x_stride = y.stride,
                         .y_stride = x.stride,
                         .scale = scale * routing.weights[i]});
  }
  arena_.release(mark);
}

}  // namespace sluice
