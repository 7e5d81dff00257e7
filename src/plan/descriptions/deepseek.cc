// DeepSeek V3, R1, V3.2, Kimi K2, GLM-5 (arXiv 2412.19437, 2512.02556; transformers,
// models/deepseek_v3) and DeepSeek V4 (the published inference code and config).
#include "base/error.h"
#include "plan/descriptions/family.h"

namespace sluice::family {
namespace {

/// Layer `layer` has a lightning indexer of its own; GLM-5.2 shares most of them.
bool has_indexer(const std::vector<std::string>& types, int layer) {
  return types.empty() || size_t(layer) >= types.size() || types[size_t(layer)] == "full";
}

PartShape deepseek_experts(const Config& config) {
  const double dim = size(config, "hidden_size"), inner = size(config, "moe_intermediate_size");
  const int n_experts = count(config, "n_routed_experts", 0);
  PartShape part = experts(dim, dim, inner, n_experts, count(config, "num_experts_per_tok", 0),
                           inner * count(config, "n_shared_experts", 0));
  part.other += n_experts;  // the bias that selects
  return part;
}

/// A layer of multi-token prediction: two norms and a projection of [embedding; hidden].
void add_draft_layer(ModelShape& model, PartShape mixer, PartShape ffn) {
  PartShape join{.kind = "join", .matrix = 2 * model.dim * model.dim, .other = 3 * model.dim};
  for (PartShape* part : {&join, &mixer, &ffn}) {
    part->layer = model.n_layers;
    model.draft.push_back(std::move(*part));
  }
}

/// Hyper-connections: one projection of the flattened streams per sublayer, in f32.
double hyper_connection(double streams, double dim) {
  const double outputs = streams * (2 + streams);
  return outputs * streams * dim + outputs + 3;
}

/// ratio 0: window only; 4: compressed sparse (with indexer); more: heavily compressed.
PartShape v4_attention(const Config& config, double ratio) {
  const double dim = size(config, "hidden_size"), n_heads = size(config, "num_attention_heads");
  const double width = size(config, "head_dim"), rope = size(config, "qk_rope_head_dim");
  const double q_rank = size(config, "q_lora_rank"), o_rank = size(config, "o_lora_rank");
  const double groups = size(config, "o_groups"), window = size(config, "sliding_window");
  PartShape part{.kind = ratio == 0 ? "window" : ratio <= 4 ? "compressed+indexer" : "compressed"};
  part.matrix = dim * q_rank + q_rank * n_heads * width + dim * width;
  part.matrix += o_rank * n_heads * width + groups * o_rank * dim;  // grouped output
  part.other = q_rank + width + n_heads + hyper_connection(size(config, "hc_mult"), dim);
  const CacheTerm entry{.bytes_16bit = 2 * width, .bytes_8bit = width - rope + 2 * rope};
  part.cache = {entry};
  part.cache.front().window = window;
  part.attention_values = n_heads * 2 * width;
  part.max_visible = window;
  if (ratio == 0) return part;
  const double overlap = ratio <= 4 ? 2 : 1;  // channels for this window and for the next
  part.matrix += 2 * dim * overlap * width;
  part.other += ratio * overlap * width + width;
  CacheTerm compressed = entry;
  compressed.positions = ratio;
  part.cache.push_back(compressed);
  if (ratio > 4) return part;
  const double index = size(config, "index_head_dim"), heads = size(config, "index_n_heads");
  part.matrix += q_rank * heads * index + dim * heads + 2 * dim * overlap * index;
  part.other += ratio * overlap * index + index;
  part.cache.back().read = size(config, "index_topk");
  part.cache.push_back({.bytes_16bit = 2 * index, .bytes_8bit = index / 2, .positions = ratio});
  part.max_visible = window + size(config, "index_topk");
  return part;
}

}  // namespace

ModelShape describe_deepseek_v3(const Config& config) {
  ModelShape model = common(config);
  const int n_dense = count(config, "first_k_dense_replace", 0);
  const bool indexer = config.has("index_head_dim");
  const std::vector<std::string> types = per_layer(config, "indexer_types", model.n_layers);
  for (int i = 0; i < model.n_layers; ++i) {
    PartShape mixer = mla(config, indexer && has_indexer(types, i));
    if (indexer) mixer.max_visible = mixer.cache.front().read = size(config, "index_topk");
    add(model, i, std::move(mixer));
    add(model, i,
        i < n_dense ? mlp(model.dim, size(config, "intermediate_size")) : deepseek_experts(config));
  }
  for (int i = 0; i < count(config, "num_nextn_predict_layers", 0); ++i) {
    add_draft_layer(model, mla(config, indexer), deepseek_experts(config));
  }
  return model;
}

ModelShape describe_deepseek_v4(const Config& config) {
  ModelShape model = common(config);
  const std::vector<std::string> ratios = per_layer(config, "compress_ratios", model.n_layers);
  if (ratios.empty()) {
    throw Error(ErrorCode::kInvalidInput, "{}: compress_ratios: missing", config.what());
  }
  const double streams = size(config, "hc_mult");
  const auto ffn = [&] {
    PartShape part = deepseek_experts(config);
    part.other += hyper_connection(streams, model.dim);
    return part;
  };
  const std::vector<int64_t> ratio_of = config.integers("compress_ratios");
  for (int i = 0; i < model.n_layers; ++i) {
    const int64_t ratio = ratio_of[size_t(i)];
    if (ratio < 0 || ratio > (1 << 20)) {
      throw Error(ErrorCode::kInvalidInput, "{}: compress_ratios[{}]: expected 0 to 2^20, got {}",
                  config.what(), i, ratio);
    }
    add(model, i, v4_attention(config, double(ratio)));
    add(model, i, ffn());
  }
  model.head.other += streams * streams * model.dim + streams + 1;
  for (int i = 0; i < count(config, "num_nextn_predict_layers", 0); ++i) {
    add_draft_layer(model, v4_attention(config, 0), ffn());
  }
  model.not_counted = {
      "partial windows of the compressors (f32, up to 16 MB per sequence for V4-Pro)",
      "tables of the layers that route by token id"};
  return model;
}

}  // namespace sluice::family
