#include "plan/descriptions/family.h"

#include "base/error.h"

namespace sluice::family {
namespace {

constexpr int64_t kMaxSize = 1 << 24;
constexpr int kMaxCount = 1 << 16;

}  // namespace

double size(const Config& config, std::string_view key) {
  return double(config.integer_in(key, 1, kMaxSize));
}

double size(const Config& config, std::string_view key, double fallback) {
  return config.has(key) ? double(config.integer_in(key, 0, kMaxSize)) : fallback;
}

double size_of(const Config& config, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys) {
    if (config.has(key)) return size(config, key);
  }
  return size(config, *keys.begin());
}

int count(const Config& config, std::string_view key, int fallback) {
  return config.has(key) ? int(config.integer_in(key, 0, kMaxCount)) : fallback;
}

std::vector<std::string> per_layer(const Config& config, std::string_view key, int n_layers) {
  std::vector<std::string> entries;
  if (!config.has(key)) return entries;
  const Json& list = config.json()[std::string(key)];
  if (!list.is_array() || int(list.size()) < n_layers) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected an array of {} entries, got {}",
                config.what(), key, n_layers,
                list.is_array() ? fmt::format("{}", list.size()) : list.type_name());
  }
  for (const Json& entry : list) {
    entries.push_back(entry.is_string() ? entry.get<std::string>() : entry.dump());
  }
  return entries;
}

ModelShape common(const Config& config) {
  ModelShape model;
  model.dim = size(config, "hidden_size");
  model.vocab = size(config, "vocab_size");
  // Nemotron 3 Ultra gives only the list of its layers.
  model.n_layers = !config.has("num_hidden_layers") && config.has("layers_block_type")
                       ? int(config.texts("layers_block_type").size())
                       : int(config.integer_in("num_hidden_layers", 1, 4096));
  model.tied = config.boolean("tie_word_embeddings", false);
  model.embedding = {.kind = "embedding", .matrix = model.vocab * model.dim};
  model.head = {.kind = "head", .matrix = model.vocab * model.dim, .other = model.dim};
  return model;
}

PartShape attention(double dim, double n_heads, double n_kv_heads, double head_dim,
                    double v_head_dim, bool bias) {
  const double q = n_heads * head_dim, k = n_kv_heads * head_dim, v = n_kv_heads * v_head_dim;
  PartShape part{.kind = "attention"};
  part.matrix = dim * (q + k + v) + n_heads * v_head_dim * dim;
  if (bias) part.other = q + k + v + dim;
  part.cache = {{.bytes_16bit = 2 * (k + v), .bytes_8bit = k + v}};
  part.cache_heads = n_kv_heads;
  part.attention_values = n_heads * (head_dim + v_head_dim);
  return part;
}

void set_window(PartShape& part, double window) {
  if (window <= 0) return;
  part.kind = "window";
  for (CacheTerm& term : part.cache) term.window = window;
  part.max_visible = window;
}

PartShape mla(const Config& config, bool indexer) {
  const double dim = size(config, "hidden_size"), n_heads = size(config, "num_attention_heads");
  const double q_rank = size(config, "q_lora_rank", 0), kv_rank = size(config, "kv_lora_rank");
  const double nope = size(config, "qk_nope_head_dim"), rope = size(config, "qk_rope_head_dim");
  const double v_dim = size(config, "v_head_dim"), q = n_heads * (nope + rope);
  PartShape part{.kind = "mla"};
  part.matrix = q_rank > 0 ? dim * q_rank + q_rank * q : dim * q;  // Wqa, Wqb or Wq
  part.matrix += dim * (kv_rank + rope);                           // Wkva
  part.matrix += kv_rank * n_heads * (nope + v_dim);               // Wkvb
  part.matrix += n_heads * v_dim * dim;                            // Wo
  part.other = q_rank + kv_rank;                                   // norms
  part.cache = {{.bytes_16bit = 2 * (kv_rank + rope), .bytes_8bit = kv_rank + rope}};
  // Absorbed: queries against the latent (kv_rank + rope), values are the latent (kv_rank).
  part.attention_values = n_heads * (2 * kv_rank + rope);
  if (indexer) {
    const double heads = size(config, "index_n_heads"), width = size(config, "index_head_dim");
    part.kind = "mla+indexer";
    part.matrix += q_rank * heads * width + dim * width + dim * heads;
    part.other += 2 * width;
    part.cache.push_back({.bytes_16bit = 2 * width, .bytes_8bit = width});
    part.max_visible = part.cache.front().read = size(config, "index_topk");
  }
  return part;
}

PartShape mlp(double dim, double inner, int n_matrices) {
  return {.kind = "mlp", .matrix = n_matrices * dim * inner};
}

PartShape experts(double dim, double expert_dim, double inner, int n_experts, int n_active,
                  double shared_inner, int n_matrices) {
  PartShape part{.kind = "experts"};
  part.expert = n_matrices * expert_dim * inner;
  part.n_experts = n_experts;
  part.n_active = n_active;
  part.matrix = n_matrices * dim * shared_inner;
  part.other = dim * n_experts;                                // the router
  if (expert_dim != dim) part.matrix += 2 * dim * expert_dim;  // into and out of the latent
  return part;
}

PartShape mamba2(double dim, double n_heads, double head_dim, double d_state, double n_groups,
                 double d_conv) {
  const double inner = n_heads * head_dim, conv = inner + 2 * n_groups * d_state;
  PartShape part{.kind = "mamba2"};
  part.matrix = dim * (inner + conv + n_heads) + inner * dim;
  part.other = conv * (d_conv + 1) + 3 * n_heads + inner;  // convolution, A, D, dt bias, norm
  part.state_values = n_heads * head_dim * d_state + (d_conv - 1) * conv;
  return part;
}

void add(ModelShape& model, int layer, PartShape part) {
  part.layer = layer;
  part.other += model.dim;
  model.blocks.push_back(std::move(part));
}

}  // namespace sluice::family
