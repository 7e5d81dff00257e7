// Granite 4 hybrid (IBM, 2025): Mamba-2 mixers (arXiv 2405.21060) with a few attention layers, each
// followed by routed experts plus a shared MLP; multipliers on embeddings, residuals and logits.
// Router: top-k of the logits, then softmax over the selected.
// Reference: transformers, models/granitemoehybrid.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "models/blocks.h"

namespace sluice {
namespace {

class Mamba2 : public Block {
 public:
  int64_t dim = 0;    // hidden_size
  Mamba2Shape shape;  // mamba_n_heads, mamba_d_head, mamba_d_state, mamba_n_groups, mamba_d_conv
  float eps = 1e-5f;
  float residual_scale = 1;                                           // residual_multiplier
  float dt_min = 0, dt_max = std::numeric_limits<float>::infinity();  // time_step_limit

  const char* kind() const override { return "mamba2"; }

  void weights(Weights& w) override {
    const int64_t in_dim = shape.d_inner() + shape.conv_dim() + shape.n_heads;
    w.vector(input_norm_, "input_layernorm.weight", dim);
    w.matrix(in_, "mamba.in_proj.weight", in_dim, dim);
    w.vector(conv_, "mamba.conv1d.weight", shape.conv_dim() * shape.d_conv);
    w.optional_vector(conv_bias_, "mamba.conv1d.bias", shape.conv_dim());
    w.vector(dt_bias_, "mamba.dt_bias", shape.n_heads);
    w.vector(A_, "mamba.A_log", shape.n_heads);
    w.vector(D_, "mamba.D", shape.n_heads);
    w.vector(norm_, "mamba.norm.weight", shape.d_inner());
    w.matrix(out_, "mamba.out_proj.weight", dim, shape.d_inner());
    for (float& a : A_) a = float(-std::exp(double(a)));
  }

  CacheSpec cache() const override {
    return {.kind = CacheKind::kRecurrent, .state_floats = shape.state_floats()};
  }

  void run(Pass& p, Tensor& x) const override {        // x: (n, dim)
    const Tensor h = p.rms_norm(x, input_norm_, eps);  // (n, dim)
    const Tensor zxbcdt = p.matmul(h, in_);            // (n, d_inner + conv_dim + n_heads)
    const Tensor y = p.mamba2(zxbcdt, shape,
                              {.conv = conv_.data(),
                               .conv_bias = conv_bias_.empty() ? nullptr : conv_bias_.data(),
                               .A = A_.data(),
                               .D = D_.data(),
                               .dt_bias = dt_bias_.data(),
                               .dt_min = dt_min,
                               .dt_max = dt_max});  // (n, d_inner)
    const Tensor z = Pass::columns(zxbcdt, 0, shape.d_inner());
    const Tensor gated = p.gated_rms_norm(y, z, norm_, eps, shape.d_inner());
    p.add_matmul(x, gated, out_, residual_scale);
  }

 private:
  std::vector<float> input_norm_;       // (dim)
  PackedMatrix in_;                     // (d_inner + conv_dim + n_heads, dim)
  std::vector<float> conv_;             // (conv_dim, d_conv)
  std::vector<float> conv_bias_;        // (conv_dim)
  std::vector<float> dt_bias_, A_, D_;  // (n_heads)
  std::vector<float> norm_;             // (d_inner)
  PackedMatrix out_;                    // (dim, d_inner)
};

class ExpertsAndShared : public Block {
 public:
  int64_t dim = 0, inner = 0, shared_inner = 0;  // hidden, intermediate, shared_intermediate_size
  int n_experts = 0, top_k = 0;                  // num_local_experts (0: only the shared MLP), ...
  float eps = 1e-5f;
  float residual_scale = 1;

  const char* kind() const override { return n_experts > 0 ? "experts" : "mlp"; }

  void weights(Weights& w) override {
    w.vector(norm_, "post_attention_layernorm.weight", dim);
    w.matrix(shared_gate_, "shared_mlp.input_linear.weight", shared_inner, dim, {0, 2});
    w.matrix(shared_up_, "shared_mlp.input_linear.weight", shared_inner, dim, {1, 2});
    w.matrix(shared_down_, "shared_mlp.output_linear.weight", dim, shared_inner);
    if (n_experts == 0) return;
    w.matrix(router_, "block_sparse_moe.router.layer.weight", n_experts, dim);
    w.experts(gate_, "block_sparse_moe.input_linear.weight", n_experts, inner, dim, {0, 2});
    w.experts(up_, "block_sparse_moe.input_linear.weight", n_experts, inner, dim, {1, 2});
    w.experts(down_, "block_sparse_moe.output_linear.weight", n_experts, dim, inner);
  }

  void run(Pass& p, Tensor& x) const override {                        // x: (n, dim)
    const Tensor h = p.rms_norm(x, norm_, eps);                        // (n, dim)
    const Tensor shared = p.silu_matmul(h, shared_gate_, shared_up_);  // (n, shared_inner)
    p.add_matmul(x, shared, shared_down_, residual_scale);
    if (n_experts == 0) return;
    const Tensor logits = p.matmul(h, router_);  // (n, n_experts)
    const Routing routing = p.route(logits, top_k, RouterKind::kTopKThenSoftmax, false);
    p.add_experts(x, h, routing, gate_, up_, down_, residual_scale);
  }

 private:
  std::vector<float> norm_;  // (dim)
  PackedMatrix shared_gate_, shared_up_,
      shared_down_;                      // (shared_inner, dim) x 2, (dim, shared_inner)
  PackedMatrix router_;                  // (n_experts, dim)
  std::vector<PackedMatrix> gate_, up_;  // n_experts x (inner, dim)
  std::vector<PackedMatrix> down_;       // n_experts x (dim, inner)
};

std::unique_ptr<Mamba2> make_mamba(const CommonConfig& common, const Config& config) {
  auto block = std::make_unique<Mamba2>();
  block->dim = common.dim;
  block->eps = common.eps;
  block->shape = {.n_heads = int(config.integer_in("mamba_n_heads", 1, 1 << 14)),
                  .head_dim = int(config.integer_in("mamba_d_head", 1, 1 << 12)),
                  .d_state = int(config.integer_in("mamba_d_state", 1, 1 << 12)),
                  .n_groups = int(config.integer_in("mamba_n_groups", 1, 1 << 12)),
                  .d_conv = int(config.integer_in("mamba_d_conv", 2, 16))};
  if (block->shape.n_heads % block->shape.n_groups != 0) {
    throw Error(ErrorCode::kInvalidInput,
                "{}: mamba_n_groups: expected a divisor of mamba_n_heads ({}), got {}",
                config.what(), block->shape.n_heads, block->shape.n_groups);
  }
  return block;
}

}  // namespace

std::unique_ptr<Model> make_granite_hybrid(const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config();
  const CommonConfig common(config);
  const std::vector<std::string> kinds = config.texts("layer_types");
  const bool rotary = config.text("position_embedding_type", "rope") == "rope";
  const float residual_scale = float(config.number("residual_multiplier", 1));
  if (int64_t(kinds.size()) != common.n_layers) {
    throw Error(ErrorCode::kInvalidInput, "{}: layer_types: expected {} entries, got {}",
                config.what(), common.n_layers, kinds.size());
  }

  auto model = std::make_unique<Model>();
  set_common(*model, common);
  model->embedding_scale = float(config.number("embedding_multiplier", 1));
  model->logits_scale = float(1 / config.number("logits_scaling", 1));
  for (int64_t i = 0; i < common.n_layers; ++i) {
    const std::string& kind = kinds[size_t(i)];
    if (kind == "mamba") {
      auto mamba = make_mamba(common, config);
      mamba->residual_scale = residual_scale;
      model->add(i, std::move(mamba));
    } else if (kind == "attention") {
      auto attention = make_attention(common, config, checkpoint);
      if (!rotary) attention->rope.reset();
      attention->shape.scale = float(config.number("attention_multiplier", 1));
      attention->residual_scale = residual_scale;
      model->add(i, std::move(attention));
    } else {
      throw Error(ErrorCode::kUnsupported,
                  "{}: layer_types[{}]: expected mamba or attention, got {}", config.what(), i,
                  kind);
    }
    auto ffn = std::make_unique<ExpertsAndShared>();
    ffn->dim = common.dim;
    ffn->inner = config.integer_in("intermediate_size", 1, 1 << 22);
    ffn->shared_inner = config.integer_in("shared_intermediate_size", 1, 1 << 22);
    ffn->n_experts = int(
        config.has("num_local_experts") ? config.integer_in("num_local_experts", 0, 1 << 16) : 0);
    if (ffn->n_experts > 0) {
      ffn->top_k = int(config.integer_in("num_experts_per_tok", 1, ffn->n_experts));
    }
    ffn->eps = common.eps;
    ffn->residual_scale = residual_scale;
    model->add(i, std::move(ffn));
  }
  return model;
}

}  // namespace sluice
