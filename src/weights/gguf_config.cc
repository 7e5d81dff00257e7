#include "weights/gguf_config.h"

#include <algorithm>

#include "base/error.h"

namespace sluice {
namespace {

/// "llama" + ".block_count".
std::string key(const GgufFile& file, std::string_view name) {
  return fmt::format("{}.{}", file.text("general.architecture"), name);
}

/// Copies a number if the file has it.
void copy_integer(const GgufFile& file, std::string_view from, Json& config, const char* to) {
  const std::string name = key(file, from);
  if (file.find(name)) config[to] = file.integer(name);
}

void copy_number(const GgufFile& file, std::string_view from, Json& config, const char* to) {
  const std::string name = key(file, from);
  if (file.find(name)) config[to] = file.number(name);
}

bool has_tensor_ending(const GgufFile& file, std::string_view suffix) {
  return std::any_of(file.tensors().begin(), file.tensors().end(),
                     [&](const TensorView& tensor) { return tensor.name.ends_with(suffix); });
}

/// The largest of a number per layer, or the one number for all layers.
int64_t largest(const GgufFile& file, std::string_view name) {
  const std::vector<int64_t> values = file.integers(key(file, name));
  if (values.empty()) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected an integer, got nothing",
                file.path().string(), key(file, name));
  }
  return *std::max_element(values.begin(), values.end());
}

int64_t of_layer(const GgufFile& file, std::string_view name, int layer) {
  const GgufValue* value = file.find(key(file, name));
  const std::vector<int64_t> values = file.integers(key(file, name));
  const size_t i = value && value->is_array ? size_t(layer) : 0;
  if (i >= values.size() || values[i] < 0) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected a number for layer {}",
                file.path().string(), key(file, name), layer);
  }
  return values[i];
}

/// Every layer has a tensor, so a larger number is wrong; lists per layer are bounded by it.
int64_t layers(const GgufFile& file) {
  const int64_t n_layers = file.integer(key(file, "block_count"));
  if (n_layers < 1 || n_layers > int64_t(file.tensors().size())) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected 1 to {} (its tensors), got {}",
                file.path().string(), key(file, "block_count"), file.tensors().size(), n_layers);
  }
  return n_layers;
}

void add_rope(const GgufFile& file, int64_t head_dim, Json& config) {
  config["rope_theta"] = file.number(key(file, "rope.freq_base"), 10000.0);
  const int64_t rotated = file.integer(key(file, "rope.dimension_count"), head_dim);
  if (rotated != head_dim) config["partial_rotary_factor"] = double(rotated) / double(head_dim);
  config["rope_scaling"] = nullptr;
  const std::string_view type = file.text(key(file, "rope.scaling.type"), "none");
  if (type == "none") return;
  if (type != "linear" && type != "yarn" && type != "longrope") {
    throw Error(ErrorCode::kUnsupported, "{}: {}: expected none, linear, yarn or longrope, got {}",
                file.path().string(), key(file, "rope.scaling.type"), type);
  }
  Json scaling = {{"rope_type", type}};
  copy_number(file, "rope.scaling.factor", scaling, "factor");
  copy_integer(file, "rope.scaling.original_context_length", scaling,
               "original_max_position_embeddings");
  copy_number(file, "rope.scaling.attn_factor", scaling, "attention_factor");
  copy_number(file, "rope.scaling.yarn_beta_fast", scaling, "beta_fast");
  copy_number(file, "rope.scaling.yarn_beta_slow", scaling, "beta_slow");
  config["rope_scaling"] = scaling;
}

void add_common(const GgufFile& file, Json& config) {
  const TensorView* embedding = file.tensor("token_embd.weight");
  if (!embedding || embedding->shape.size() != 2) {
    throw Error(ErrorCode::kInvalidInput, "{}: tensor token_embd.weight: expected a matrix",
                file.path().string());
  }
  const int64_t hidden = file.integer(key(file, "embedding_length"));
  const int64_t heads = largest(file, "attention.head_count");
  if (hidden < 1 || heads < 1 || heads > hidden) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected 1 to {}, got {}", file.path().string(),
                key(file, "attention.head_count"), hidden, heads);
  }
  const int64_t head_dim = file.integer(key(file, "attention.key_length"), hidden / heads);
  if (head_dim < 1) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected a size, got {}", file.path().string(),
                key(file, "attention.key_length"), head_dim);
  }
  config["vocab_size"] = embedding->shape[0];
  config["hidden_size"] = hidden;
  config["num_hidden_layers"] = layers(file);
  config["num_attention_heads"] = heads;
  config["num_key_value_heads"] = file.find(key(file, "attention.head_count_kv"))
                                      ? largest(file, "attention.head_count_kv")
                                      : heads;
  config["head_dim"] = head_dim;
  config["intermediate_size"] = largest(file, "feed_forward_length");
  config["max_position_embeddings"] = file.integer(key(file, "context_length"));
  config["rms_norm_eps"] = file.number(key(file, "attention.layer_norm_rms_epsilon"));
  config["hidden_act"] = "silu";
  config["tie_word_embeddings"] = file.tensor("output.weight") == nullptr;
  config["attention_bias"] = has_tensor_ending(file, ".attn_output.bias");
  config["mlp_bias"] = has_tensor_ending(file, ".ffn_gate.bias");
  add_rope(file, head_dim, config);
  for (const char* token : {"bos_token_id", "eos_token_id"}) {
    const std::string name = fmt::format("tokenizer.ggml.{}", token);
    if (file.find(name)) config[token] = file.integer(name);
  }
}

void add_mixtral(const GgufFile& file, Json& config) {
  copy_integer(file, "expert_count", config, "num_local_experts");
  copy_integer(file, "expert_used_count", config, "num_experts_per_tok");
}

void add_qwen3_moe(const GgufFile& file, Json& config) {
  copy_integer(file, "expert_count", config, "num_experts");
  copy_integer(file, "expert_used_count", config, "num_experts_per_tok");
  copy_integer(file, "expert_feed_forward_length", config, "moe_intermediate_size");
  // What every published qwen3_moe config says, and GGUF leaves out.
  config["norm_topk_prob"] = file.boolean(key(file, "expert_weights_norm"), true);
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = Json::array();
}

void add_granite(const GgufFile& file, Json& config) {
  copy_number(file, "attention.scale", config, "attention_multiplier");
  copy_number(file, "embedding_scale", config, "embedding_multiplier");
  copy_number(file, "residual_scale", config, "residual_multiplier");
  copy_number(file, "logit_scale", config, "logits_scaling");
}

void add_granite_moe(const GgufFile& file, Json& config) {
  add_granite(file, config);
  config["num_local_experts"] = file.integer(key(file, "expert_count"), 0);
  config["num_experts_per_tok"] = file.integer(key(file, "expert_used_count"), 0);
}

void add_granite_hybrid(const GgufFile& file, Json& config) {
  add_granite_moe(file, config);
  config["shared_intermediate_size"] = file.integer(key(file, "expert_shared_feed_forward_length"),
                                                    config.at("intermediate_size").get<int64_t>());
  const bool is_rotated = file.boolean(key(file, "rope.scaling.finetuned"), true);
  config["position_embedding_type"] = is_rotated ? "rope" : "nope";
  Json types = Json::array();
  bool has_mamba = false;
  for (int64_t i = 0; i < config.at("num_hidden_layers").get<int64_t>(); ++i) {
    const bool is_attention = gguf_key_heads(file, int(i)) > 0;
    types.push_back(is_attention ? "attention" : "mamba");
    has_mamba |= !is_attention;
  }
  config["layer_types"] = types;
  if (!has_mamba) return;
  const int64_t inner = file.integer(key(file, "ssm.inner_size"));
  const int64_t heads = file.integer(key(file, "ssm.time_step_rank"));
  if (heads < 1 || inner < 1 || inner % heads != 0) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected a divisor of {}, got {}",
                file.path().string(), key(file, "ssm.time_step_rank"), inner, heads);
  }
  config["mamba_n_heads"] = heads;
  config["mamba_d_head"] = inner / heads;
  config["mamba_expand"] = inner / config.at("hidden_size").get<int64_t>();
  config["mamba_d_conv"] = file.integer(key(file, "ssm.conv_kernel"));
  config["mamba_d_state"] = file.integer(key(file, "ssm.state_size"));
  config["mamba_n_groups"] = file.integer(key(file, "ssm.group_count"), 1);
  config["mamba_conv_bias"] = has_tensor_ending(file, ".ssm_conv1d.bias");
  config["mamba_proj_bias"] = has_tensor_ending(file, ".ssm_in.bias");
}

constexpr GgufArchitecture kArchitectures[] = {
    {"llama", "llama", "LlamaForCausalLM", true, nullptr},
    {"qwen2", "qwen2", "Qwen2ForCausalLM", false, nullptr},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", false, nullptr},
    {"qwen3moe", "qwen3_moe", "Qwen3MoeForCausalLM", false, add_qwen3_moe},
    {"granite", "granite", "GraniteForCausalLM", true, add_granite},
    {"granitemoe", "granitemoe", "GraniteMoeForCausalLM", true, add_granite_moe},
    {"granitehybrid", "granitemoehybrid", "GraniteMoeHybridForCausalLM", true, add_granite_hybrid},
};

// GGUF has no name of its own for a llama with experts.
constexpr GgufArchitecture kMixtral = {"llama", "mixtral", "MixtralForCausalLM", true, add_mixtral};

}  // namespace

const GgufArchitecture& gguf_architecture(const GgufFile& file) {
  const std::string_view name = file.text("general.architecture");
  if (name == "llama" && file.integer("llama.expert_count", 0) > 0) return kMixtral;
  std::string known;
  for (const GgufArchitecture& architecture : kArchitectures) {
    if (architecture.name == name) return architecture;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", architecture.name);
  }
  throw Error(ErrorCode::kUnsupported, "{}: general.architecture: expected one of {}, got {}",
              file.path().string(), known, name);
}

Config config_from_gguf(const GgufFile& file) {
  const GgufArchitecture& architecture = gguf_architecture(file);
  Json config = {{"architectures", {architecture.class_name}},
                 {"model_type", architecture.model_type}};
  add_common(file, config);
  if (architecture.add_keys) architecture.add_keys(file, config);
  return Config(std::move(config), file.path().string() + ": metadata");
}

int64_t gguf_query_heads(const GgufFile& file, int layer) {
  return of_layer(file, "attention.head_count", layer);
}

int64_t gguf_key_heads(const GgufFile& file, int layer) {
  const bool has_own = file.find(key(file, "attention.head_count_kv")) != nullptr;
  return of_layer(file, has_own ? "attention.head_count_kv" : "attention.head_count", layer);
}

}  // namespace sluice
