// Qwen3-MoE (arXiv 2505.09388): Qwen3's attention, routed experts without a shared one.
// Router: softmax over all experts in f32, top-k, renormalised if norm_topk_prob.
// Reference: transformers, models/qwen3_moe.
#include <algorithm>

#include "base/error.h"
#include "models/blocks.h"

namespace sluice {
namespace {

class Experts : public Block {
 public:
  int64_t dim = 0, inner = 0;    // hidden_size, moe_intermediate_size
  int n_experts = 0, top_k = 0;  // num_experts, num_experts_per_tok
  bool norm_topk_prob = false;
  float eps = 1e-6f;

  const char* kind() const override { return "experts"; }

  void weights(Weights& w) override {
    w.vector(norm_, "post_attention_layernorm.weight", dim);
    w.matrix(router_, "mlp.gate.weight", n_experts, dim);
    w.experts(gate_, "mlp.experts.{}.gate_proj.weight", n_experts, inner, dim);
    w.experts(up_, "mlp.experts.{}.up_proj.weight", n_experts, inner, dim);
    w.experts(down_, "mlp.experts.{}.down_proj.weight", n_experts, dim, inner);
  }

  void run(Pass& p, Tensor& x) const override {  // x: (n, dim)
    const Tensor h = p.rms_norm(x, norm_, eps);  // (n, dim)
    const Tensor logits = p.matmul(h, router_);  // (n, n_experts)
    const Routing routing = p.route(logits, top_k, RouterKind::kSoftmaxThenTopK, norm_topk_prob);
    p.add_experts(x, h, routing, gate_, up_, down_);
  }

 private:
  std::vector<float> norm_;              // (dim)
  PackedMatrix router_;                  // (n_experts, dim)
  std::vector<PackedMatrix> gate_, up_;  // n_experts x (inner, dim)
  std::vector<PackedMatrix> down_;       // n_experts x (dim, inner)
};

}  // namespace

std::unique_ptr<Model> make_qwen3_moe(const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config();
  const CommonConfig common(config);
  const int n_experts = int(config.integer_in("num_experts", 1, 1 << 16));
  const int64_t step =
      config.has("decoder_sparse_step") ? config.integer_in("decoder_sparse_step", 1, 1 << 16) : 1;
  const std::vector<int64_t> dense =
      config.has("mlp_only_layers") ? config.integers("mlp_only_layers") : std::vector<int64_t>{};

  auto model = std::make_unique<Model>();
  set_common(*model, common);
  for (int64_t i = 0; i < common.n_layers; ++i) {
    auto attention = make_attention(common, config, checkpoint);
    attention->qk_norm = true;
    model->add(i, std::move(attention));
    if (std::find(dense.begin(), dense.end(), i) != dense.end() || (i + 1) % step != 0) {
      model->add(i, make_mlp(common, config));
      continue;
    }
    auto experts = std::make_unique<Experts>();
    experts->dim = common.dim;
    experts->inner = config.integer_in("moe_intermediate_size", 1, 1 << 22);
    experts->n_experts = n_experts;
    experts->top_k = int(config.integer_in("num_experts_per_tok", 1, n_experts));
    experts->norm_topk_prob = config.boolean("norm_topk_prob", false);
    experts->eps = common.eps;
    model->add(i, std::move(experts));
  }
  return model;
}

}  // namespace sluice
