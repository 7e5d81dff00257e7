// Blocks that two or more architectures share.
#pragma once

#include <optional>
#include <vector>

#include "models/model.h"

namespace sluice {

/// Grouped-query attention with optional biases, q/k norms, rotary positions and window.
class Attention : public Block {
 public:
  int64_t dim = 0;           // hidden_size
  AttentionShape shape;      // num_attention_heads, num_key_value_heads, head_dim, ...
  float eps = 1e-5f;         // rms_norm_eps
  bool qk_norm = false;      // RMS norm per head before the rotation (Qwen3)
  std::optional<Rope> rope;  // none: no positions
  float residual_scale = 1;

  const char* kind() const override { return "attention"; }
  void weights(Weights& w) override;
  CacheSpec cache() const override;
  void run(Pass& p, Tensor& x) const override;

 private:
  std::vector<float> norm_;               // (dim)
  PackedMatrix wq_, wk_, wv_;             // (heads * head_dim, dim)
  PackedMatrix wo_;                       // (dim, n_heads * head_dim)
  std::vector<float> bq_, bk_, bv_, bo_;  // empty without bias
  std::vector<float> q_norm_, k_norm_;    // (head_dim)
};

/// x += down(silu(gate h) * (up h)), h = rms_norm(x)
class GatedMlp : public Block {
 public:
  int64_t dim = 0, inner = 0;  // hidden_size, intermediate_size
  float eps = 1e-5f;

  const char* kind() const override { return "mlp"; }
  void weights(Weights& w) override;
  void run(Pass& p, Tensor& x) const override;

 private:
  std::vector<float> norm_;  // (dim)
  PackedMatrix gate_, up_;   // (inner, dim)
  PackedMatrix down_;        // (dim, inner)
  std::vector<float> gate_bias_, up_bias_, down_bias_;
};

/// Sizes that most configs spell alike; throws for sizes out of range.
struct CommonConfig {
  explicit CommonConfig(const Config& config);
  int64_t dim, n_layers, vocab, max_context;
  int n_heads, n_kv_heads, head_dim;
  float eps;
  bool tied;
};

/// Fills what CommonConfig has into the model.
void set_common(Model& model, const CommonConfig& common);
/// An Attention block with the common sizes and rotary positions.
std::unique_ptr<Attention> make_attention(const CommonConfig& common, const Config& config,
                                          const Checkpoint& checkpoint);
/// A GatedMlp of intermediate_size.
std::unique_ptr<GatedMlp> make_mlp(const CommonConfig& common, const Config& config);

}  // namespace sluice
