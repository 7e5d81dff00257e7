#include "plan/describe.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "cache/storage.h"
#include "models/model.h"
#include "plan/config_checkpoint.h"
#include "plan/descriptions/family.h"

namespace sluice {
namespace {

struct Family {
  const char* model_type;
  ModelShape (*describe)(const Config&);
};

constexpr Family kFamilies[] = {
    {"deepseek_v3", family::describe_deepseek_v3},
    {"deepseek_v32", family::describe_deepseek_v3},
    {"kimi_k2", family::describe_deepseek_v3},
    {"glm_moe_dsa", family::describe_deepseek_v3},
    {"deepseek_v4", family::describe_deepseek_v4},
    {"deepseek_ref", family::describe_deepseek_v4},
    {"kimi_linear", family::describe_kimi_linear},
    {"nemotron_h", family::describe_nemotron_h},
    {"qwen3_next", family::describe_gated_delta},
    {"qwen3_5_text", family::describe_gated_delta},
    {"qwen3_5_moe_text", family::describe_gated_delta},
    {"jamba", family::describe_jamba},
    {"mixtral", family::describe_mixtral},
    {"gpt_oss", family::describe_gpt_oss},
    {"minimax_m2", family::describe_minimax},
    {"minimax_m3", family::describe_minimax},
    {"llama4_text", family::describe_llama4},
    {"gemma3_text", family::describe_gemma},
    {"gemma4_text", family::describe_gemma},
    {"mimo_v2_flash", family::describe_mimo_v2},
    {"step3p7", family::describe_step3},
};

/// Model types whose text model is one that the engine runs.
struct Alias {
  const char* model_type;
  const char* architecture;
};

constexpr Alias kAliases[] = {
    {"llama", "LlamaForCausalLM"},
    {"mistral", "MistralForCausalLM"},
    {"qwen2", "Qwen2ForCausalLM"},
    {"mimo", "Qwen2ForCausalLM"},  // Qwen2's block; its prediction layer is not counted
    {"qwen3", "Qwen3ForCausalLM"},
    {"qwen3_moe", "Qwen3MoeForCausalLM"},
    {"qwen3_vl_text", "Qwen3ForCausalLM"},
    {"qwen3_vl_moe_text", "Qwen3MoeForCausalLM"},
    {"granitemoehybrid", "GraniteMoeHybridForCausalLM"},
};

/// Adds up what a block declares.
class ShapeCounter : public Weights {
 public:
  explicit ShapeCounter(const ConfigCheckpoint& checkpoint) : checkpoint_(checkpoint) {}
  PartShape part;
  double experts = 0;

 protected:
  bool has(const WeightName& name) const override { return checkpoint_.has(name); }
  void add_matrix(PackedMatrix&, const WeightName& name, int64_t rows, int64_t cols) override {
    const double n = double(rows) * double(cols);
    if (name.expert >= 0) {
      experts += n;
      part.n_experts = std::max(part.n_experts, name.expert + 1);
    } else if (name.name.ends_with("mlp.gate.weight") ||
               name.name.find("router") != name.name.npos) {
      part.other += n;
    } else {
      part.matrix += n;
    }
  }
  void add_vector(std::vector<float>&, const WeightName&, int64_t n) override {
    part.other += double(n);
  }

 private:
  const ConfigCheckpoint& checkpoint_;
};

template <typename Declare>
PartShape count_part(const ConfigCheckpoint& checkpoint, const std::string& prefix,
                     Declare declare) {
  ShapeCounter counter(checkpoint);
  counter.set_prefix(prefix);
  declare(counter);
  PartShape part = counter.part;
  if (part.n_experts > 0) {
    part.expert = counter.experts / part.n_experts;
    part.n_active = int(std::clamp<int64_t>(checkpoint.config().integer("num_experts_per_tok", 1),
                                            0, part.n_experts));
  }
  return part;
}

void set_cache(PartShape& part, const CacheSpec& spec, const Config& config) {
  if (spec.kind == CacheKind::kRecurrent) part.state_values = double(spec.state_floats);
  if (spec.kind != CacheKind::kPagedKv) return;
  const double bytes = double(cache_bytes_per_token(spec, true));
  // The engine keeps pages of every position, also where a window hides the old ones.
  part.cache = {{.bytes_16bit = bytes, .bytes_8bit = bytes / 2}};
  part.attention_values =
      double(config.integer("num_attention_heads")) * double(spec.head_dim + spec.v_head_dim);
  part.cache_heads = double(spec.n_kv_heads);
  part.max_visible = spec.window;
}

/// Through the Model classes that the engine runs.
ModelShape describe_with_engine(const Config& config) {
  const ConfigCheckpoint checkpoint(config);
  const std::unique_ptr<Model> model = make_model(checkpoint);
  ModelShape shape;
  shape.dim = double(model->dim);
  shape.vocab = double(model->vocab);
  shape.n_layers = int(config.integer("num_hidden_layers"));
  shape.tied = model->tied;
  shape.runs = true;
  shape.page_positions = kPageTokens;
  shape.embedding = count_part(checkpoint, "", [&](Weights& w) { model->embed_weights(w); });
  shape.embedding.kind = "embedding";
  shape.head = count_part(checkpoint, "", [&](Weights& w) { model->head_weights(w); });
  shape.head.kind = "head";
  for (PlacedBlock& placed : model->blocks) {
    PartShape part =
        count_part(checkpoint, placed.prefix, [&](Weights& w) { placed.block->weights(w); });
    part.kind = placed.block->kind();
    part.layer = placed.layer;
    set_cache(part, placed.block->cache(), config);
    shape.blocks.push_back(std::move(part));
  }
  return shape;
}

/// The text model of a wrapper, with the wrapper's quantisation.
Config text_config(const Config& config) {
  if (!config.has("text_config")) return config;
  Json text = config.object("text_config").json();
  for (const char* key : {"quantization_config", "tie_word_embeddings", "_name_or_path"}) {
    if (!text.contains(key) && config.has(key)) text[key] = config.json()[key];
  }
  return Config(std::move(text), config.what());
}

bool ignores_attention(const Config& quantization) {
  for (const char* key : {"ignore", "modules_to_not_convert", "exclude_modules"}) {
    if (!quantization.has(key)) continue;
    if (quantization.json()[key].dump().find("self_attn") != std::string::npos) return true;
  }
  return false;
}

/// Names of a format that is not among those below are priced in 16 bits, and said so.
void check_names(const Config& config, std::vector<std::string>& notices) {
  const auto check = [&](const char* key, std::initializer_list<std::string_view> known) {
    const std::string name = config.text(key, "");
    if (name.empty() || std::find(known.begin(), known.end(), name) != known.end()) return;
    notices.push_back(fmt::format("{}: {} is not known (known: {}): priced without it", key, name,
                                  fmt::join(known, ", ")));
  };
  check("torch_dtype", {"bfloat16", "float16", "float32"});
  check("dtype", {"bfloat16", "float16", "float32"});
  check("expert_dtype", {"fp4", "fp8"});
}

/// GPTQ and AWQ: integers of so many bits, with a scale in 16 bits and a zero for each group.
WeightFormat grouped_format(const Config& quantization, const std::string& method) {
  const int64_t bits = quantization.integer("bits", 4);
  const int64_t group = quantization.integer("group_size", 128);
  if (bits < 2 || bits > 8) {
    throw Error(ErrorCode::kInvalidInput, "{}: bits: expected 2 to 8, got {}", quantization.what(),
                bits);
  }
  if (group != -1 && (group < 8 || group > 1 << 20)) {
    throw Error(ErrorCode::kInvalidInput, "{}: group_size: expected -1 or 8 to {}, got {}",
                quantization.what(), 1 << 20, group);
  }
  const double per_group = group > 0 ? double(16 + bits) / double(group) : 0;
  const double bytes = (double(bits) + per_group) / 8;
  return {fmt::format("{} of {} bits", method, bits), bytes, bytes, 2, 2};
}

/// The last word of `name` that is a format of fewer than 16 bits, and its bits.
std::optional<std::pair<std::string, int>> format_in(const std::string& name) {
  static const std::map<std::string, int, std::less<>> known = {
      {"4bit", 4}, {"awq", 4},   {"fp4", 4},   {"gptq", 4}, {"int4", 4}, {"mxfp4", 4},
      {"nf4", 4},  {"nvfp4", 4}, {"w4a16", 4}, {"w4a8", 4}, {"8bit", 8}, {"fp8", 8},
      {"int8", 8}, {"mxfp8", 8}, {"w8a16", 8}, {"w8a8", 8}};
  std::optional<std::pair<std::string, int>> found;
  std::string word, lower;
  for (const char c : name + ' ') {
    const bool is_digit = c >= '0' && c <= '9', is_capital = c >= 'A' && c <= 'Z';
    if (is_digit || is_capital || (c >= 'a' && c <= 'z')) {
      word += c;
      lower += is_capital ? char(c - 'A' + 'a') : c;
      continue;
    }
    if (const auto at = known.find(lower); at != known.end()) found = {word, at->second};
    word.clear();
    lower.clear();
  }
  return found;
}

/// A config that tells no format is priced in 16 bits, also where a name says that there are fewer.
void check_model_names(const Config& config, const std::string& name,
                       std::vector<std::string>& notices) {
  const std::pair<const char*, std::string> names[] = {
      {"the name", name}, {"_name_or_path", config.text("_name_or_path", "")}};
  for (const auto& [what, text] : names) {
    const auto format = format_in(text);
    if (!format) continue;
    notices.push_back(
        fmt::format("quantisation: {} says {}, the config has no quantization_config: priced in 16 "
                    "bits; --weights {}bit prices {}",
                    what, format->first, format->second, format->second));
    return;
  }
}

/// What the files hold, from `quantization_config`. Scales count.
WeightFormat published_format(const Config& config, const std::string& name,
                              std::vector<std::string>& notices) {
  constexpr double kBlockFp8 = 1 + 4.0 / (128 * 128), kMxfp4 = 4.25 / 8, kNvfp4 = 4.5 / 8;
  check_names(config, notices);
  WeightFormat format;
  if (!config.has("quantization_config")) {
    check_model_names(config, name, notices);
    return format;
  }
  const Config quantization = config.object("quantization_config");
  const std::string method = quantization.text("quant_method", "");
  const std::string all = quantization.json().dump();
  const bool only_experts = ignores_attention(quantization);
  if (all.find("NVFP4") != all.npos) {
    format = {"NVFP4", only_experts ? 2 : kNvfp4, kNvfp4, 2, 2};
  } else if (method == "mxfp4" || all.find("mxfp4") != all.npos) {
    format = {"MXFP4 experts", 2, kMxfp4, 2, 2};
  } else if (method == "compressed-tensors" && all.find("\"num_bits\":4") != all.npos) {
    format = {"4-bit experts, groups of 32", 2, kNvfp4, 2, 2};  // 16-bit scale per 32: 4.5 bits
  } else if (method == "gptq" || method == "awq") {
    format = grouped_format(quantization, method);
  } else if (all.find("fp8") != all.npos || all.find("FP8") != all.npos ||
             all.find("\"num_bits\":8") != all.npos) {
    format = {"FP8", kBlockFp8, kBlockFp8, 2, 2};
    if (config.text("expert_dtype", "") == "fp4") {
      format.name = "FP8, FP4 experts";
      format.expert = kMxfp4;
    }
  } else if (!quantization.json().empty()) {
    notices.push_back(
        fmt::format("quantization_config: quant_method: {} is not known (known: fp8, modelopt with "
                    "FP8 or NVFP4, mxfp4, compressed-tensors with 4 or 8 bits, gptq, awq): priced "
                    "in 16 bits",
                    method.empty() ? "none" : method));
  }
  return format;
}

}  // namespace

std::vector<std::string> described_model_types() {
  std::vector<std::string> names;
  for (const Alias& alias : kAliases) names.emplace_back(alias.model_type);
  for (const Family& known : kFamilies) names.emplace_back(known.model_type);
  return names;
}

ModelShape describe_model(const Config& config, const std::string& name) {
  const Config text = text_config(config);
  const std::string type = text.text("model_type", "");
  const auto finish = [&](ModelShape shape) {
    shape.architecture = type;
    shape.source = config.what();
    for (const PartShape& part : shape.blocks) {
      if (part.n_active <= part.n_experts) continue;
      throw Error(ErrorCode::kInvalidInput,
                  "{}: layer {}: expected at most {} experts per token, got {}", config.what(),
                  part.layer, part.n_experts, part.n_active);
    }
    shape.published = published_format(text, name.empty() ? config.what() : name, shape.unsure);
    return shape;
  };
  for (const Alias& alias : kAliases) {
    if (type != alias.model_type) continue;
    Json json = text.json();
    json["architectures"] = {alias.architecture};
    if (type == "mimo") json["use_sliding_window"] = false;  // as long as its longest context
    return finish(describe_with_engine(Config(std::move(json), config.what())));
  }
  for (const Family& known : kFamilies) {
    if (type == known.model_type) return finish(known.describe(text));
  }
  throw Error(ErrorCode::kUnsupported,
              "{}: model_type: {} is not a family that the planner knows (known: {})",
              config.what(), type.empty() ? "an empty text" : type,
              fmt::join(described_model_types(), ", "));
}

}  // namespace sluice
