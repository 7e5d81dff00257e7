// The operations of Pass that use the cache: attention and Mamba-2.
#include <algorithm>

#include "base/error.h"
#include "kernels/pass.h"

namespace sluice {
namespace {

/// Rows of one attention piece: enough queries to share each key that is loaded.
constexpr int64_t kAttendRows = 16;

}  // namespace

KvPages Pass::pages_of(const Segment& segment, const AttentionShape& shape) const {
  return {.k = kv_.k,
          .v = kv_.v,
          .k_page_bytes = kv_.k_page_bytes,
          .v_page_bytes = kv_.v_page_bytes,
          .page_of = segment.pages.data(),
          .n_kv_heads = shape.n_kv_heads,
          .head_dim = shape.head_dim,
          .v_head_dim = shape.v_head_dim};
}

Tensor Pass::attend(const Tensor& q, const Tensor& k, const Tensor& v,
                    const AttentionShape& shape) {
  const Tensor y = tensor(q.n, int64_t(shape.n_heads) * shape.v_head_dim);
  // A row of its own page waits for memory, rows of one page hardly.
  const int64_t grain = segments_.size() > 1 ? 4 : 64;
  pool_.parallel_for(q.n, grain, [&](int64_t first, int64_t last, int) {
    for (const Segment& s : segments_) {
      const int64_t from = std::max<int64_t>(first, s.first_row);
      const int64_t to = std::min<int64_t>(last, s.first_row + s.n_rows);
      if (from >= to) continue;
      const KvStoreArgs args{.pages = pages_of(s, shape),
                             .k = k.row(from),
                             .v = v.row(from),
                             .n = to - from,
                             .position = s.first_position + from - s.first_row,
                             .k_stride = k.stride,
                             .v_stride = v.stride};
      (kv_.f16 ? kernels_.kv_store_f16 : kernels_.kv_store_f32)(args);
    }
  });
  // One join for all sequences: each has been stored completely by now.
  attend_segments(q, y, shape);
  return y;
}

void Pass::attend_segments(const Tensor& q, const Tensor& y, const AttentionShape& shape) {
  const int64_t n_kv_heads = shape.n_kv_heads;
  const int64_t partial_stride = 16 + (shape.v_head_dim + 15) / 16 * 16;
  const auto kernel = kv_.f16 ? kernels_.attend_f16 : kernels_.attend_f32;
  attend_work_.clear();
  attend_pieces_.clear();
  int64_t n_pieces = 0;
  for (const Segment& s : segments_) {
    const int64_t first_seen =
        shape.window > 0 ? std::max(0, s.first_position - shape.window + 1) : 0;
    const int64_t first_span = first_seen / kSpanPositions;
    const int64_t n_spans = (s.first_position + s.n_rows - 1) / kSpanPositions - first_span + 1;
    AttendArgs args{.pages = pages_of(s, shape),
                    .q = q.row(s.first_row),
                    .y = y.row(s.first_row),
                    .n = s.n_rows,
                    .position = s.first_position,
                    .n_heads = shape.n_heads,
                    .window = shape.window,
                    .q_stride = q.stride,
                    .y_stride = y.stride,
                    .scale = shape.scale,
                    .first_row = 0,
                    .last_row = s.n_rows,
                    .first_head = 0,
                    .last_head = n_kv_heads,
                    .partial = nullptr,
                    .partial_stride = partial_stride,
                    .n_spans = n_spans,
                    .first_span = first_span,
                    .last_span = first_span + n_spans};
    // Few rows over a long context are cut by spans, many rows by rows.
    if (s.n_rows < kAttendRows && n_spans > 1) {
      args.partial = arena_.array<float>(s.n_rows * shape.n_heads * n_spans * partial_stride);
      n_pieces += n_spans * n_kv_heads;
    } else {
      n_pieces += (s.n_rows + kAttendRows - 1) / kAttendRows * n_kv_heads;
    }
    attend_work_.push_back(args);
    attend_pieces_.push_back(n_pieces);
  }
  pool_.parallel_for(n_pieces, 1, [&](int64_t first, int64_t last, int) {
    for (int64_t piece = first; piece < last; ++piece) {
      const size_t s =
          size_t(std::upper_bound(attend_pieces_.begin(), attend_pieces_.end(), piece) -
                 attend_pieces_.begin());
      const int64_t index = piece - (s == 0 ? 0 : attend_pieces_[s - 1]);
      AttendArgs args = attend_work_[s];
      args.first_head = index % n_kv_heads;
      args.last_head = args.first_head + 1;
      const int64_t part = index / n_kv_heads;
      if (args.partial) {
        args.first_span += part;
        args.last_span = args.first_span + 1;
      } else {
        args.first_row = part * kAttendRows;
        args.last_row = std::min(args.first_row + kAttendRows, args.n);
      }
      kernel(args);
    }
  });
  for (const AttendArgs& args : attend_work_) {
    if (args.partial) kernels_.attend_merge(args);
  }
}

Tensor Pass::mamba2(const Tensor& zxbcdt, const Mamba2Shape& shape, const Mamba2Weights& w) {
  const int64_t d_inner = shape.d_inner(), conv_dim = shape.conv_dim();
  const int64_t group_dim = int64_t(shape.n_groups) * shape.d_state;
  const Tensor xbc = columns(zxbcdt, d_inner, conv_dim);
  const Tensor dt = columns(zxbcdt, d_inner + conv_dim, shape.n_heads);
  const Tensor conv = tensor(zxbcdt.n, conv_dim);
  const Tensor y = tensor(zxbcdt.n, d_inner);
  float* const unsaved = arena_.array<float>(shape.state_floats());
  const auto slot = [&](int32_t index) {
    return state_.data + int64_t(index) * state_.slot_floats;
  };

  for (const Segment& s : segments_) {
    const float* state = s.state_load >= 0 ? slot(s.state_load) : nullptr;
    // Runs of rows that end where the state is saved.
    for (int32_t first = 0, last = 0; first < s.n_rows; first = last) {
      do ++last;
      while (last < s.n_rows && s.state_save[size_t(last - 1)] < 0);
      const int32_t save = s.state_save[size_t(last - 1)];
      float* const out = save >= 0 ? slot(save) : unsaved;
      const int64_t r = s.first_row + first, n = last - first;
      pool_.parallel_for(conv_dim, std::max<int64_t>(256, 65536 / n / 64 * 64),
                         [&](int64_t c, int64_t end, int) {
                           kernels_.conv_silu({.x = xbc.row(r) + c,
                                               .weight = w.conv + c * shape.d_conv,
                                               .bias = w.conv_bias ? w.conv_bias + c : nullptr,
                                               .tail_in = state ? state + c : nullptr,
                                               .tail_out = out + c,
                                               .y = conv.row(r) + c,
                                               .n = n,
                                               .channels = end - c,
                                               .taps = shape.d_conv,
                                               .x_stride = xbc.stride,
                                               .y_stride = conv.stride,
                                               .tail_stride = conv_dim});
                         });
      pool_.parallel_for(shape.n_heads, 1, [&](int64_t head, int64_t end, int) {
        kernels_.ssm_scan({.x = conv.row(r),
                           .B = conv.row(r) + d_inner,
                           .C = conv.row(r) + d_inner + group_dim,
                           .dt = dt.row(r),
                           .dt_bias = w.dt_bias,
                           .A = w.A,
                           .D = w.D,
                           .state_in = state ? state + shape.conv_floats() : nullptr,
                           .state_out = out + shape.conv_floats(),
                           .y = y.row(r),
                           .n = n,
                           .n_heads = shape.n_heads,
                           .head_dim = shape.head_dim,
                           .d_state = shape.d_state,
                           .n_groups = shape.n_groups,
                           .first_head = head,
                           .last_head = end,
                           .x_stride = conv.stride,
                           .B_stride = conv.stride,
                           .C_stride = conv.stride,
                           .dt_stride = dt.stride,
                           .y_stride = y.stride,
                           .dt_min = w.dt_min,
                           .dt_max = w.dt_max});
      });
      state = out;
    }
  }
  return y;
}

}  // namespace sluice
