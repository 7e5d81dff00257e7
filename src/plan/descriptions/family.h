// What the descriptions of model families share.
#pragma once

#include <string>

#include "base/json.h"
#include "plan/model_shape.h"

namespace sluice::family {

// Sizes with limits that no real config reaches.
double size(const Config& config, std::string_view key);                   // 1 .. 2^24, required
double size(const Config& config, std::string_view key, double fallback);  // 0 .. 2^24
/// The first of `keys` that is there.
double size_of(const Config& config, std::initializer_list<std::string_view> keys);
int count(const Config& config, std::string_view key, int fallback);  // 0 .. 2^16
/// An array with one entry per layer, as texts ("0" for the number 0). Empty without the key.
std::vector<std::string> per_layer(const Config& config, std::string_view key, int n_layers);

/// Name, sizes, embedding and head from the fields that every config has.
ModelShape common(const Config& config);

/// Grouped-query attention: projections, optional biases, keys and values of a position.
PartShape attention(double dim, double n_heads, double n_kv_heads, double head_dim,
                    double v_head_dim, bool bias);
/// Keeps only `window` positions (and attends to no more); 0: all.
void set_window(PartShape& part, double window);

/// Multi-head latent attention (DeepSeek V2, arXiv 2405.04434) with an optional lightning indexer.
PartShape mla(const Config& config, bool indexer);

/// Feed-forward of `n_matrices` matrices (3: gated).
PartShape mlp(double dim, double inner, int n_matrices = 3);
/// Routed experts of `n_matrices` matrices on `expert_dim`, with shared experts of
/// `shared_inner` in all.
PartShape experts(double dim, double expert_dim, double inner, int n_experts, int n_active,
                  double shared_inner, int n_matrices = 3);

/// Mamba-2 mixer (arXiv 2405.21060) with one projection for z, x, B, C and dt.
PartShape mamba2(double dim, double n_heads, double head_dim, double d_state, double n_groups,
                 double d_conv);

/// Appends a part to layer `layer` with its norm of `dim` weights.
void add(ModelShape& model, int layer, PartShape part);

// One function per family: model types in `describe.cc`.
ModelShape describe_deepseek_v3(const Config& config);
ModelShape describe_deepseek_v4(const Config& config);
ModelShape describe_kimi_linear(const Config& config);
ModelShape describe_nemotron_h(const Config& config);
ModelShape describe_gated_delta(const Config& config);
ModelShape describe_jamba(const Config& config);
ModelShape describe_mixtral(const Config& config);
ModelShape describe_gpt_oss(const Config& config);
ModelShape describe_minimax(const Config& config);
ModelShape describe_llama4(const Config& config);
ModelShape describe_gemma(const Config& config);
ModelShape describe_mimo_v2(const Config& config);
ModelShape describe_step3(const Config& config);

}  // namespace sluice::family
