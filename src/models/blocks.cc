#include "models/blocks.h"

#include <cmath>

#include "base/error.h"
#include "models/rope.h"

namespace sluice {

void Attention::weights(Weights& w) {
  const int64_t q_dim = int64_t(shape.n_heads) * shape.head_dim;
  const int64_t kv_dim = int64_t(shape.n_kv_heads) * shape.head_dim;
  w.vector(norm_, "input_layernorm.weight", dim);
  w.matrix(wq_, "self_attn.q_proj.weight", q_dim, dim);
  w.matrix(wk_, "self_attn.k_proj.weight", kv_dim, dim);
  w.matrix(wv_, "self_attn.v_proj.weight", kv_dim, dim);
  w.matrix(wo_, "self_attn.o_proj.weight", dim, q_dim);
  w.optional_vector(bq_, "self_attn.q_proj.bias", q_dim);
  w.optional_vector(bk_, "self_attn.k_proj.bias", kv_dim);
  w.optional_vector(bv_, "self_attn.v_proj.bias", kv_dim);
  w.optional_vector(bo_, "self_attn.o_proj.bias", dim);
  if (qk_norm) {
    w.vector(q_norm_, "self_attn.q_norm.weight", shape.head_dim);
    w.vector(k_norm_, "self_attn.k_norm.weight", shape.head_dim);
  }
}

CacheSpec Attention::cache() const {
  return {.kind = CacheKind::kPagedKv,
          .n_kv_heads = shape.n_kv_heads,
          .head_dim = shape.head_dim,
          .v_head_dim = shape.v_head_dim,
          .window = shape.window};
}

void Attention::run(Pass& p, Tensor& x) const {  // x: (n, dim)
  const Tensor h = p.rms_norm(x, norm_, eps);    // (n, dim)
  const PackedMatrix* const w[] = {&wq_, &wk_, &wv_};
  Tensor qkv[3];  // (n, heads * head_dim) each
  p.matmul_each(h, w, qkv);
  auto& [q, k, v] = qkv;
  p.add_bias(q, bq_);
  p.add_bias(k, bk_);
  p.add_bias(v, bv_);
  if (qk_norm) {
    p.rms_norm_heads(q, shape.head_dim, q_norm_, eps);
    p.rms_norm_heads(k, shape.head_dim, k_norm_, eps);
  }
  if (rope) {
    p.rope(q, shape.head_dim, *rope);
    p.rope(k, shape.head_dim, *rope);
  }
  const Tensor attended = p.attend(q, k, v, shape);  // (n, n_heads * head_dim)
  p.add_matmul(x, attended, wo_, residual_scale);
  p.add_bias(x, bo_);
}

void GatedMlp::weights(Weights& w) {
  w.vector(norm_, "post_attention_layernorm.weight", dim);
  w.matrix(gate_, "mlp.gate_proj.weight", inner, dim);
  w.matrix(up_, "mlp.up_proj.weight", inner, dim);
  w.matrix(down_, "mlp.down_proj.weight", dim, inner);
  w.optional_vector(gate_bias_, "mlp.gate_proj.bias", inner);
  w.optional_vector(up_bias_, "mlp.up_proj.bias", inner);
  w.optional_vector(down_bias_, "mlp.down_proj.bias", dim);
}

void GatedMlp::run(Pass& p, Tensor& x) const {                                // x: (n, dim)
  const Tensor h = p.rms_norm(x, norm_, eps);                                 // (n, dim)
  const Tensor inner_x = p.silu_matmul(h, gate_, up_, gate_bias_, up_bias_);  // (n, inner)
  p.add_matmul(x, inner_x, down_);
  p.add_bias(x, down_bias_);
}

CommonConfig::CommonConfig(const Config& config)
    : dim(config.integer_in("hidden_size", 1, 1 << 20)),
      n_layers(config.integer_in("num_hidden_layers", 1, 4096)),
      vocab(config.integer_in("vocab_size", 1, 1 << 24)),
      max_context(config.has("max_position_embeddings")
                      ? config.integer_in("max_position_embeddings", 1, 1 << 28)
                      : 2048),
      n_heads(int(config.integer_in("num_attention_heads", 1, 1 << 16))),
      n_kv_heads(config.has("num_key_value_heads")
                     ? int(config.integer_in("num_key_value_heads", 1, 1 << 16))
                     : n_heads),
      head_dim(config.has("head_dim") ? int(config.integer_in("head_dim", 1, 1 << 12))
                                      : int(dim / n_heads)),
      eps(float(config.number("rms_norm_eps", 1e-6))),
      tied(config.boolean("tie_word_embeddings", false)) {
  if (n_heads % n_kv_heads != 0) {
    throw Error(ErrorCode::kInvalidInput,
                "{}: num_key_value_heads: expected a divisor of num_attention_heads ({}), got {}",
                config.what(), n_heads, n_kv_heads);
  }
  if (head_dim < 2 || head_dim > 512) {
    throw Error(ErrorCode::kUnsupported, "{}: head_dim: expected 2 to 512, got {}", config.what(),
                head_dim);
  }
  if (const std::string act = config.text("hidden_act", "silu"); act != "silu") {
    throw Error(ErrorCode::kUnsupported, "{}: hidden_act: expected silu, got {}", config.what(),
                act);
  }
}

void set_common(Model& model, const CommonConfig& common) {
  model.dim = common.dim;
  model.vocab = common.vocab;
  model.max_context = common.max_context;
  model.norm_eps = common.eps;
  model.tied = common.tied;
}

std::unique_ptr<Attention> make_attention(const CommonConfig& common, const Config& config,
                                          const Checkpoint& checkpoint) {
  auto block = std::make_unique<Attention>();
  block->dim = common.dim;
  block->eps = common.eps;
  block->shape = {.n_heads = common.n_heads,
                  .n_kv_heads = common.n_kv_heads,
                  .head_dim = common.head_dim,
                  .v_head_dim = common.head_dim,
                  .scale = float(1 / std::sqrt(double(common.head_dim)))};
  block->rope = make_rope(config, checkpoint, common.head_dim);
  return block;
}

std::unique_ptr<GatedMlp> make_mlp(const CommonConfig& common, const Config& config) {
  auto block = std::make_unique<GatedMlp>();
  block->dim = common.dim;
  block->inner = config.integer_in("intermediate_size", 1, 1 << 22);
  block->eps = common.eps;
  return block;
}

}  // namespace sluice
