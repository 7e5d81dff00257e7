// Families that keep a state instead of, or beside, keys and values: Kimi Linear and K3 (arXiv
// 2510.26692), Nemotron-H and Nemotron 3 (arXiv 2504.03624), Qwen3-Next and Qwen3.5 (gated delta
// rule, arXiv 2412.06464), Jamba (Mamba-1, arXiv 2403.19887).
#include <algorithm>

#include "base/error.h"
#include "plan/descriptions/family.h"

namespace sluice::family {
namespace {

/// Kimi delta attention: decay per key channel; q, k, v with a short convolution each.
PartShape kda(double dim, const Config& linear) {
  const double heads = size(linear, "num_heads"), width = size(linear, "head_dim");
  const double conv = size(linear, "short_conv_kernel_size"), inner = heads * width;
  PartShape part{.kind = "kda"};
  part.matrix = 3 * dim * inner + inner * dim;  // q, k, v, o
  part.matrix += dim * width + width * inner;   // decay, low rank
  part.matrix += dim * heads;                   // beta
  part.matrix +=
      linear.boolean("use_full_rank_gate", false) ? dim * inner : dim * width + width * inner;
  part.other = 3 * inner * conv + inner + heads + width;
  part.state_values = heads * width * width + (conv - 1) * 3 * inner;
  return part;
}

PartShape gated_delta(const Config& config, double dim) {
  const double nk = size(config, "linear_num_key_heads"),
               nv = size(config, "linear_num_value_heads");
  const double dk = size(config, "linear_key_head_dim"), dv = size(config, "linear_value_head_dim");
  const double conv = size(config, "linear_conv_kernel_dim"), qkv = 2 * nk * dk + nv * dv;
  PartShape part{.kind = "gated_delta"};
  part.matrix = dim * (qkv + nv * dv + 2 * nv) + nv * dv * dim;  // q|k|v, z, a and b; out
  part.other = qkv * conv + 2 * nv + dv;
  part.state_values = nv * dk * dv + (conv - 1) * qkv;
  return part;
}

PartShape mamba1(const Config& config, double dim) {
  const double inner = dim * size(config, "mamba_expand"), n = size(config, "mamba_d_state");
  const double conv = size(config, "mamba_d_conv");
  const double rank = size(config, "mamba_dt_rank", std::max(1.0, dim / 16));
  PartShape part{.kind = "mamba1"};
  part.matrix = dim * 2 * inner + inner * (rank + 2 * n) + rank * inner + inner * dim;
  part.other = inner * (conv + 1) + inner * (n + 2) + rank + 2 * n;
  part.state_values = inner * n + (conv - 1) * inner;
  return part;
}

char nemotron_letter(const Config& config, const std::string& kind) {
  if (kind == "mamba") return 'M';
  if (kind == "attention") return '*';
  if (kind == "mlp") return '-';
  if (kind == "moe") return 'E';
  throw Error(ErrorCode::kUnsupported,
              "{}: layers_block_type: expected mamba, attention, mlp or moe, got {}", config.what(),
              kind);
}

std::string nemotron_pattern(const Config& config, const char* list, const char* letters) {
  if (config.has(letters)) return config.text(letters);
  std::string pattern;
  if (!config.has(list)) return pattern;
  for (const std::string& kind : config.texts(list)) pattern += nemotron_letter(config, kind);
  return pattern;
}

PartShape nemotron_mixer(const Config& config, double dim, char letter) {
  switch (letter) {
    case 'M':
      return mamba2(dim, size(config, "mamba_num_heads"), size(config, "mamba_head_dim"),
                    size(config, "ssm_state_size"), size(config, "n_groups"),
                    size(config, "conv_kernel"));
    case '*': {
      const double width = size_of(config, {"head_dim", "attention_head_dim"});
      return attention(dim, size(config, "num_attention_heads"),
                       size(config, "num_key_value_heads"), width, width, false);
    }
    case '-':
      return mlp(dim, size(config, "intermediate_size"), 2);
    case 'E': {
      const double latent = size(config, "moe_latent_size", 0);
      PartShape part =
          experts(dim, latent > 0 ? latent : dim, size(config, "moe_intermediate_size"),
                  count(config, "n_routed_experts", 0), count(config, "num_experts_per_tok", 0),
                  size(config, "moe_shared_expert_intermediate_size", 0) *
                      count(config, "n_shared_experts", 1),
                  2);
      part.other += part.n_experts;
      return part;
    }
    default:
      throw Error(ErrorCode::kInvalidInput,
                  "{}: hybrid_override_pattern: expected M, *, - and E, got {}", config.what(),
                  letter);
  }
}

}  // namespace

ModelShape describe_kimi_linear(const Config& config) {
  ModelShape model = common(config);
  const Config linear = config.object("linear_attn_config");
  const std::vector<int64_t> full = linear.integers("full_attn_layers");  // counted from 1
  const int n_dense = count(config, "first_k_dense_replace", 0);
  const double inner = size(config, "moe_intermediate_size");
  const double latent = size(config, "routed_expert_hidden_size", model.dim);
  const double out_gate =
      config.boolean("mla_use_output_gate", false)
          ? model.dim * size(config, "num_attention_heads") * size(config, "v_head_dim")
          : 0;
  for (int i = 0; i < model.n_layers; ++i) {
    const bool is_full = std::find(full.begin(), full.end(), i + 1) != full.end();
    PartShape mixer = is_full ? mla(config, false) : kda(model.dim, linear);
    if (is_full) mixer.matrix += out_gate;
    add(model, i, std::move(mixer));
    PartShape ffn = i < n_dense ? mlp(model.dim, size(config, "intermediate_size"))
                                : experts(model.dim, latent, inner, count(config, "num_experts", 0),
                                          count(config, "num_experts_per_token", 0),
                                          inner * count(config, "num_shared_experts", 0));
    ffn.other += ffn.n_experts;
    add(model, i, std::move(ffn));
  }
  if (config.has("attn_res_block_size")) model.not_counted = {"weights of the attention residuals"};
  return model;
}

ModelShape describe_nemotron_h(const Config& config) {
  ModelShape model = common(config);
  const std::string pattern =
      nemotron_pattern(config, "layers_block_type", "hybrid_override_pattern");
  if (int(pattern.size()) != model.n_layers) {
    throw Error(ErrorCode::kInvalidInput, "{}: hybrid_override_pattern: expected {} layers, got {}",
                config.what(), model.n_layers, pattern.size());
  }
  for (int i = 0; i < model.n_layers; ++i) {
    add(model, i, nemotron_mixer(config, model.dim, pattern[size_t(i)]));
  }
  if (count(config, "num_nextn_predict_layers", 0) > 0) {
    PartShape join{.kind = "join", .layer = model.n_layers, .matrix = 2 * model.dim * model.dim};
    model.draft.push_back(join);
    for (char letter :
         nemotron_pattern(config, "mtp_layers_block_type", "mtp_hybrid_override_pattern")) {
      model.draft.push_back(nemotron_mixer(config, model.dim, letter));
    }
  }
  return model;
}

ModelShape describe_gated_delta(const Config& config) {
  ModelShape model = common(config);
  const std::vector<std::string> kinds = per_layer(config, "layer_types", model.n_layers);
  const int interval = std::max(1, count(config, "full_attention_interval", 4));
  const double n_heads = size(config, "num_attention_heads"), width = size(config, "head_dim");
  const auto full = [&] {
    PartShape part =
        attention(model.dim, n_heads, size(config, "num_key_value_heads"), width, width, false);
    part.matrix += model.dim * n_heads * width;  // the output gate, in q_proj
    part.other += 2 * width;
    return part;
  };
  const auto ffn = [&] {
    if (!config.has("num_experts")) return mlp(model.dim, size(config, "intermediate_size"));
    PartShape part =
        experts(model.dim, model.dim, size(config, "moe_intermediate_size"),
                count(config, "num_experts", 0), count(config, "num_experts_per_tok", 0),
                size(config, "shared_expert_intermediate_size", 0));
    part.other += model.dim;  // gate of the shared expert
    return part;
  };
  for (int i = 0; i < model.n_layers; ++i) {
    const bool is_full =
        kinds.empty() ? (i + 1) % interval == 0 : kinds[size_t(i)] == "full_attention";
    add(model, i, is_full ? full() : gated_delta(config, model.dim));
    add(model, i, ffn());
  }
  for (int i = 0; i < count(config, "mtp_num_hidden_layers", 0); ++i) {
    model.draft.push_back({.kind = "join",
                           .layer = model.n_layers,
                           .matrix = 2 * model.dim * model.dim,
                           .other = 3 * model.dim});
    model.draft.push_back(full());
    model.draft.push_back(ffn());
  }
  return model;
}

ModelShape describe_jamba(const Config& config) {
  ModelShape model = common(config);
  const int attention_period = std::max(1, count(config, "attn_layer_period", 8));
  const int attention_offset = count(config, "attn_layer_offset", 4);
  const int expert_period = std::max(1, count(config, "expert_layer_period", 2));
  const int expert_offset = count(config, "expert_layer_offset", 1);
  const double n_heads = size(config, "num_attention_heads"),
               inner = size(config, "intermediate_size");
  for (int i = 0; i < model.n_layers; ++i) {
    add(model, i,
        i % attention_period == attention_offset
            ? attention(model.dim, n_heads, size(config, "num_key_value_heads"),
                        model.dim / n_heads, model.dim / n_heads, false)
            : mamba1(config, model.dim));
    add(model, i,
        i % expert_period == expert_offset
            ? experts(model.dim, model.dim, inner, count(config, "num_experts", 16),
                      count(config, "num_experts_per_tok", 2), 0)
            : mlp(model.dim, inner));
  }
  return model;
}

}  // namespace sluice::family
