// What a block computes with: tensors in a scratch arena, the operations of the architectures as
// plain calls, this batch's rows and the cache of the block that runs. Every operation gives a row
// the same bits whatever other rows, threads or chunks there are.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/arena.h"
#include "kernels/packed.h"
#include "kernels/table.h"
#include "kernels/thread_pool.h"

namespace sluice {

/// (n, dim) floats in scratch memory, rows `stride` floats apart (a multiple of 16).
struct Tensor {
  float* data = nullptr;
  int64_t n = 0, dim = 0, stride = 0;
  I8Rows* quantized = nullptr;  // the same rows in 8 bits, once a matmul has needed them

  float* row(int64_t r) const { return data + r * stride; }
};

/// The cache of the block that runs; see kv_store in args.h for the layout of a page.
struct KvView {
  void* k = nullptr;
  void* v = nullptr;
  int64_t k_page_bytes = 0, v_page_bytes = 0;
  bool f16 = false;
};
struct StateView {
  float* data = nullptr;  // (slots, slot_floats)
  int64_t slot_floats = 0;
};

/// Consecutive rows of one sequence.
struct Segment {
  int32_t first_row = 0, n_rows = 0;
  int32_t first_position = 0;
  std::span<const int32_t> pages;
  int32_t state_load = -1;              // slot, or -1: zero
  std::span<const int32_t> state_save;  // per row: slot or -1
};

struct Rope {
  std::vector<double> inv_freq;  // (rotated dims / 2)
  float scale = 1;               // multiplies cos and sin
};

struct AttentionShape {
  int n_heads = 0, n_kv_heads = 0, head_dim = 0, v_head_dim = 0;
  int window = 0;   // positions visible, the query's own included; 0: all
  float scale = 1;  // multiplies q . k
};

struct Mamba2Shape {
  int n_heads = 0, head_dim = 0, d_state = 0, n_groups = 0, d_conv = 0;
  int64_t d_inner() const { return int64_t(n_heads) * head_dim; }
  int64_t conv_dim() const { return d_inner() + 2 * int64_t(n_groups) * d_state; }
  int64_t conv_floats() const { return conv_dim() * (d_conv - 1); }
  int64_t state_floats() const { return conv_floats() + d_inner() * d_state; }
};

struct Mamba2Weights {
  const float* conv;       // (conv_dim, d_conv)
  const float* conv_bias;  // (conv_dim); may be nullptr
  const float* A;          // (n_heads), negative
  const float* D;          // (n_heads)
  const float* dt_bias;    // (n_heads)
  float dt_min, dt_max;    // clamp after softplus
};

/// Experts chosen for each row: (n, k) ids and weights; k ids of a row in order of rank.
struct Routing {
  int k = 0;
  int32_t* experts = nullptr;
  float* weights = nullptr;
};
enum class RouterKind : uint8_t { kSoftmaxThenTopK, kTopKThenSoftmax };

class Pass {
 public:
  Pass(const KernelTable& kernels, ThreadPool& pool, bool i8);

  // ---- What the stage sets before a block runs ----
  void begin(std::span<const int32_t> positions, std::span<const Segment> segments);
  void bind(KvView kv, StateView state);
  Arena& arena() { return arena_; }
  Tensor tensor(int64_t n, int64_t dim);

  // ---- What blocks call ----
  Tensor rms_norm(const Tensor& x, const std::vector<float>& weight, float eps);  // (n, dim)
  /// RMS norm of each head on its own, in place; weight: (head_dim).
  void rms_norm_heads(Tensor& x, int head_dim, const std::vector<float>& weight, float eps);
  Tensor matmul(const Tensor& x, const PackedMatrix& w);  // (n, w.rows)
  /// As matmul, with activations of twice 8 bits where matmul has 8: for the output matrix, whose
  /// errors nothing evens out.
  Tensor matmul_fine(const Tensor& x, const PackedMatrix& w);
  /// Several matrices on the same input with one join.
  void matmul_each(const Tensor& x, std::span<const PackedMatrix* const> w, std::span<Tensor> y);
  /// x += scale * (w h), (n, w.rows)
  void add_matmul(Tensor& x, const Tensor& h, const PackedMatrix& w, float scale = 1);
  /// silu(gate h) * (up h), (n, gate.rows)
  Tensor silu_matmul(const Tensor& h, const PackedMatrix& gate, const PackedMatrix& up,
                     const std::vector<float>& gate_bias = {},
                     const std::vector<float>& up_bias = {});
  void add_bias(Tensor& x, const std::vector<float>& bias);  // nothing for an empty bias
  void scale(Tensor& x, float factor);
  /// Rotates pairs (i, i + d/2) of the first d = 2 * inv_freq.size() dims of every head, in place.
  void rope(Tensor& x, int head_dim, const Rope& rope);
  /// Stores k and v in the cache, then attends: (n, n_heads * v_head_dim).
  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionShape& shape);
  /// zxbcdt: (n, d_inner + conv_dim + n_heads) = [z | x B C | dt]; -> (n, d_inner), before the
  /// gate.
  Tensor mamba2(const Tensor& zxbcdt, const Mamba2Shape& shape, const Mamba2Weights& w);
  /// rms_norm(x * silu(z)) * weight, per group of `group` dims.
  Tensor gated_rms_norm(const Tensor& x, const Tensor& z, const std::vector<float>& weight,
                        float eps, int64_t group);
  Routing route(const Tensor& logits, int k, RouterKind kind, bool renormalise);
  /// x += scale * sum over the routed experts of weight * down(silu(gate h) * (up h))
  void add_experts(Tensor& x, const Tensor& h, const Routing& routing,
                   const std::vector<PackedMatrix>& gate, const std::vector<PackedMatrix>& up,
                   const std::vector<PackedMatrix>& down, float scale = 1);
  /// Columns [first, first + dim) of x, sharing its memory.
  static Tensor columns(const Tensor& x, int64_t first, int64_t dim);

  std::span<const int32_t> positions() const { return positions_; }
  ThreadPool& pool() { return pool_; }

 private:
  struct RopeTable {
    std::vector<double> inv_freq;
    float scale;
    std::vector<float> cos, sin;  // (rows, inv_freq.size())
    bool valid;                   // for the positions at hand
  };
  /// Rows of a matmul's input, in f32 and, if the weights want it, in 8 bits (q.q not null).
  struct Input {
    Tensor x;
    I8Rows q{};
    Input rows(int64_t first, int64_t n) const;
  };
  struct ExpertRows;

  const RopeTable& rope_table(const Rope& rope);
  I8Rows allocate_i8(const Tensor& x);
  void quantize_rows(const Tensor& x, const I8Rows& q, int64_t first, int64_t last) const;
  Input input(const Tensor& x, const PackedMatrix& w);
  /// y: column 16 * first of the result.
  void matmul_panels(const Input& in, const PackedMatrix& w, int64_t first, int64_t last, float* y,
                     int64_t y_stride) const;
  KvPages pages_of(const Segment& segment, const AttentionShape& shape) const;
  void attend_segments(const Tensor& q, const Tensor& y, const AttentionShape& shape);
  ExpertRows group_by_expert(const Routing& routing, int64_t n, int64_t n_experts);

  const KernelTable& kernels_;
  ThreadPool& pool_;
  bool i8_;
  Arena arena_;
  std::span<const int32_t> positions_;
  std::span<const Segment> segments_;
  std::vector<RopeTable> rope_tables_;
  std::vector<AttendArgs> attend_work_;  // by segment
  std::vector<int64_t> attend_pieces_;   // by segment: pieces up to its end
  KvView kv_;
  StateView state_;
};

}  // namespace sluice
