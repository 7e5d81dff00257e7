#include "plan/config_checkpoint.h"

#include "base/error.h"

namespace sluice {

ConfigCheckpoint::ConfigCheckpoint(Config config)
    : config_(std::move(config)), path_(config_.what()) {
  attention_bias_ = config_.boolean("attention_bias", false);
  qwen2_bias_ = config_.has("architectures") && !config_.texts("architectures").empty() &&
                config_.texts("architectures").front() == "Qwen2ForCausalLM";
}

bool ConfigCheckpoint::has(const WeightName& name) const {
  const std::string& n = name.name;
  if (n.ends_with("self_attn.o_proj.bias")) return attention_bias_;
  const bool is_qkv = n.ends_with("self_attn.q_proj.bias") ||
                      n.ends_with("self_attn.k_proj.bias") || n.ends_with("self_attn.v_proj.bias");
  return is_qkv && (attention_bias_ || qwen2_bias_);
}

MatrixSource ConfigCheckpoint::matrix(const WeightName& name, int64_t rows, int64_t cols) const {
  return {.dtype = DType::kBF16,
          .rows = rows,
          .cols = cols,
          .row_bytes = bytes_of(DType::kBF16, cols),
          .where = config_.what() + ": tensor " + name.name};
}

std::vector<float> ConfigCheckpoint::vector(const WeightName&, int64_t n) const {
  return std::vector<float>(size_t(n));
}

}  // namespace sluice
