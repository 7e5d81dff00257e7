// Families of plain or windowed grouped-query attention with experts: Mixtral (arXiv 2401.04088),
// gpt-oss (arXiv 2508.10925), MiniMax M2 and M3, Llama 4, Gemma 3 and 4, MiMo-V2-Flash, Step 3.
// Shapes: the published configs and transformers.
#include <algorithm>

#include "base/error.h"
#include "plan/descriptions/family.h"

namespace sluice::family {
namespace {

double head_dim(const Config& config) {
  return config.has("head_dim") ? size(config, "head_dim")
                                : size(config, "hidden_size") / size(config, "num_attention_heads");
}

PartShape common_attention(const Config& config) {
  const double width = head_dim(config);
  return attention(size(config, "hidden_size"), size(config, "num_attention_heads"),
                   size_of(config, {"num_key_value_heads", "num_attention_heads"}), width, width,
                   config.boolean("attention_bias", false));
}

}  // namespace

ModelShape describe_mixtral(const Config& config) {
  ModelShape model = common(config);
  for (int i = 0; i < model.n_layers; ++i) {
    PartShape mixer = common_attention(config);
    if (config.has("sliding_window")) set_window(mixer, size(config, "sliding_window"));
    add(model, i, std::move(mixer));
    add(model, i,
        experts(model.dim, model.dim, size(config, "intermediate_size"),
                count(config, "num_local_experts", 0), count(config, "num_experts_per_tok", 0), 0));
  }
  return model;
}

ModelShape describe_gpt_oss(const Config& config) {
  ModelShape model = common(config);
  const std::vector<std::string> kinds = per_layer(config, "layer_types", model.n_layers);
  const double inner = size(config, "intermediate_size");
  for (int i = 0; i < model.n_layers; ++i) {
    PartShape mixer = common_attention(config);
    mixer.other += size(config, "num_attention_heads");  // sinks
    const bool slides = kinds.empty() ? i % 2 == 0 : kinds[size_t(i)] == "sliding_attention";
    if (slides) set_window(mixer, size(config, "sliding_window"));
    add(model, i, std::move(mixer));
    PartShape ffn = experts(model.dim, model.dim, inner, count(config, "num_local_experts", 0),
                            count(config, "num_experts_per_tok", 0), 0);
    ffn.other += ffn.n_experts * (1 + 2 * inner + model.dim);  // biases of router and experts
    add(model, i, std::move(ffn));
  }
  return model;
}

ModelShape describe_minimax(const Config& config) {
  ModelShape model = common(config);
  const double width = head_dim(config), heads = size(config, "num_attention_heads");
  const bool per_head = config.text("qk_norm_type", "per_layer") == "per_head";
  const std::vector<std::string> is_sparse = per_layer(config, "moe_layer_freq", model.n_layers);
  const int n_dense = count(config, "first_k_dense_replace", 0);
  for (int i = 0; i < model.n_layers; ++i) {
    PartShape mixer = common_attention(config);
    mixer.other += per_head ? 2 * width : width * (heads + size(config, "num_key_value_heads"));
    add(model, i, std::move(mixer));
    const bool dense = is_sparse.empty() ? i < n_dense : is_sparse[size_t(i)] == "0";
    if (dense) {
      add(model, i,
          mlp(model.dim, size_of(config, {"dense_intermediate_size", "intermediate_size"})));
      continue;
    }
    PartShape ffn = experts(
        model.dim, model.dim, size_of(config, {"moe_intermediate_size", "intermediate_size"}),
        count(config, "num_local_experts", 0), count(config, "num_experts_per_tok", 0),
        size(config, "shared_intermediate_size", 0) * count(config, "n_shared_experts", 1));
    ffn.other += ffn.n_experts;
    add(model, i, std::move(ffn));
  }
  if (config.has("sparse_attention_config")) {
    model.not_counted = {"index heads and keys of the block-sparse attention"};
  }
  if (count(config, "num_mtp_modules", 0) > 0) {
    model.not_counted.push_back("multi-token prediction modules");
  }
  return model;
}

ModelShape describe_llama4(const Config& config) {
  ModelShape model = common(config);
  const int step = std::max(1, count(config, "interleave_moe_layer_step", 1));
  const double inner = size(config, "intermediate_size");
  const double chunk = size(config, "attention_chunk_size", 0);
  for (int i = 0; i < model.n_layers; ++i) {
    PartShape mixer = common_attention(config);
    if ((i + 1) % 4 != 0) set_window(mixer, chunk);  // three local layers, then a global one
    add(model, i, std::move(mixer));
    add(model, i,
        (i + 1) % step == 0
            ? experts(model.dim, model.dim, inner, count(config, "num_local_experts", 0),
                      count(config, "num_experts_per_tok", 1), inner)
            : mlp(model.dim, size(config, "intermediate_size_mlp")));
  }
  return model;
}

ModelShape describe_gemma(const Config& config) {
  ModelShape model = common(config);
  model.tied = config.boolean("tie_word_embeddings", true);
  const std::vector<std::string> kinds = per_layer(config, "layer_types", model.n_layers);
  const double heads = size(config, "num_attention_heads"), local = head_dim(config);
  const double local_kv = size(config, "num_key_value_heads");
  const double global = size(config, "global_head_dim", local);
  const double global_kv = size(config, "num_global_key_value_heads", local_kv);
  const bool shared_kv = config.boolean("attention_k_eq_v", false);
  if (count(config, "hidden_size_per_layer_input", 0) > 0) {
    throw Error(ErrorCode::kUnsupported, "{}: hidden_size_per_layer_input: expected 0, got {}",
                config.what(), config.integer("hidden_size_per_layer_input"));
  }
  for (int i = 0; i < model.n_layers; ++i) {
    const bool full = kinds.empty() ? (i + 1) % 6 == 0 : kinds[size_t(i)] == "full_attention";
    PartShape mixer = full ? attention(model.dim, heads, global_kv, global, global, false)
                           : attention(model.dim, heads, local_kv, local, local, false);
    if (full && shared_kv) mixer.matrix -= model.dim * global_kv * global;  // v = k, before norm
    if (!full) set_window(mixer, size(config, "sliding_window"));
    mixer.other += model.dim + 2 * (full ? global : local);
    add(model, i, std::move(mixer));
    PartShape ffn = mlp(model.dim, size(config, "intermediate_size"));
    if (config.boolean("enable_moe_block", false)) {
      ffn = experts(model.dim, model.dim, size(config, "moe_intermediate_size"),
                    count(config, "num_experts", 0), count(config, "top_k_experts", 0),
                    size(config, "intermediate_size"));
      ffn.other += ffn.n_experts + 3 * model.dim;
    }
    ffn.other += model.dim;
    add(model, i, std::move(ffn));
  }
  return model;
}

ModelShape describe_mimo_v2(const Config& config) {
  ModelShape model = common(config);
  const std::vector<std::string> slides = per_layer(config, "hybrid_layer_pattern", model.n_layers);
  const std::vector<std::string> sparse = per_layer(config, "moe_layer_freq", model.n_layers);
  for (int i = 0; i < model.n_layers; ++i) {
    const bool local = !slides.empty() && slides[size_t(i)] == "1";
    PartShape mixer =
        local ? attention(model.dim, size(config, "swa_num_attention_heads"),
                          size(config, "swa_num_key_value_heads"), size(config, "swa_head_dim"),
                          size(config, "swa_v_head_dim"), false)
              : attention(model.dim, size(config, "num_attention_heads"),
                          size(config, "num_key_value_heads"), size(config, "head_dim"),
                          size(config, "v_head_dim"), false);
    if (local) set_window(mixer, size(config, "sliding_window"));
    add(model, i, std::move(mixer));
    const bool dense = !sparse.empty() && sparse[size_t(i)] == "0";
    add(model, i,
        dense ? mlp(model.dim, size(config, "intermediate_size"))
              : experts(model.dim, model.dim, size(config, "moe_intermediate_size"),
                        count(config, "n_routed_experts", 0),
                        count(config, "num_experts_per_tok", 0), 0));
  }
  return model;
}

ModelShape describe_step3(const Config& config) {
  ModelShape model = common(config);
  const std::vector<std::string> kinds = per_layer(config, "layer_types", model.n_layers);
  const int n_dense = count(config, "first_k_dense_replace", 0);
  for (int i = 0; i < model.n_layers; ++i) {
    PartShape mixer = common_attention(config);
    if (!kinds.empty() && kinds[size_t(i)] == "sliding_attention") {
      set_window(mixer, size(config, "sliding_window"));
    }
    add(model, i, std::move(mixer));
    add(model, i,
        i < n_dense
            ? mlp(model.dim, size(config, "intermediate_size"))
            : experts(model.dim, model.dim, size(config, "moe_intermediate_size"),
                      count(config, "num_experts", 0), count(config, "num_experts_per_tok", 0),
                      size(config, "share_expert_dim", 0) * count(config, "n_shared_experts", 1)));
  }
  if (count(config, "num_nextn_predict_layers", 0) > 0) {
    model.not_counted = {"multi-token prediction layers"};
  }
  return model;
}

}  // namespace sluice::family
