#include "weights/gguf_names.h"

#include <charconv>
#include <string_view>

namespace sluice {
namespace {

/// One Hugging Face name and a GGUF name for it, both without a ".weight" or ".bias" that they
/// share. When several rows have the same name, the first that the file contains is meant.
struct Row {
  std::string_view hf, gguf;
  // Not 1: GGUF keeps this part of the Hugging Face tensor as a tensor of its own.
  int n_parts = 1, part = 0;
};

constexpr Row kOutside[] = {
    {"embed_tokens", "token_embd"},
    {"norm", "output_norm"},
    {"lm_head", "output"},
    // Divisors of the rotary frequencies, (head_dim / 2): how GGUF records llama3 rope scaling.
    {"rope_freqs", "rope_freqs"},
};

// After "model.layers.N." and "blk.N.".
constexpr Row kLayer[] = {
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    // qwen3_moe
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.experts.{}.gate_proj", "ffn_gate_exps"},
    {"mlp.experts.{}.up_proj", "ffn_up_exps"},
    {"mlp.experts.{}.down_proj", "ffn_down_exps"},
    // mixtral
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"block_sparse_moe.experts.{}.w1", "ffn_gate_exps"},
    {"block_sparse_moe.experts.{}.w3", "ffn_up_exps"},
    {"block_sparse_moe.experts.{}.w2", "ffn_down_exps"},
    // granitemoe, granitemoehybrid
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"block_sparse_moe.input_linear", "ffn_gate_exps", 2, 0},
    {"block_sparse_moe.input_linear", "ffn_up_exps", 2, 1},
    {"block_sparse_moe.output_linear", "ffn_down_exps"},
    {"shared_mlp.input_linear", "ffn_gate_shexp", 2, 0},
    {"shared_mlp.input_linear", "ffn_up_shexp", 2, 1},
    {"shared_mlp.output_linear", "ffn_down_shexp"},
    {"shared_mlp.input_linear", "ffn_gate", 2, 0},  // models without routed experts
    {"shared_mlp.input_linear", "ffn_up", 2, 1},
    {"shared_mlp.output_linear", "ffn_down"},
    // Mamba-2 mixers
    {"mamba.in_proj", "ssm_in"},
    {"mamba.out_proj", "ssm_out"},
    {"mamba.conv1d", "ssm_conv1d"},
    {"mamba.norm", "ssm_norm"},
    {"mamba.dt_bias", "ssm_dt.bias"},
    {"mamba.A_log", "ssm_a"},
    {"mamba.D", "ssm_d"},
};

/// Removes `prefix` from the front of `text`.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// "12.self_attn..." -> 12, leaving what follows the dot; -1 if there is no such number.
int take_layer(std::string_view& text) {
  int layer = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layer);
  if (error != std::errc() || end == text.data() + text.size() || *end != '.') return -1;
  text.remove_prefix(size_t(end - text.data()) + 1);
  return layer;
}

/// ".weight" or ".bias" at the end of `name`, or nothing.
std::string_view ending(std::string_view name) {
  for (const std::string_view suffix : {".weight", ".bias"}) {
    if (name.ends_with(suffix)) return name.substr(name.size() - suffix.size());
  }
  return {};
}

}  // namespace

std::optional<GgufPlace> find_in_gguf(const GgufFile& file, const WeightName& name) {
  std::string_view rest = name.name;
  take(rest, "model.");
  GgufPlace place;
  std::string prefix;
  if (take(rest, "layers.")) {
    place.layer = take_layer(rest);
    if (place.layer < 0) return std::nullopt;
    prefix = "blk." + std::to_string(place.layer) + ".";
  }
  const std::string_view suffix = ending(rest);
  const std::string_view stem = rest.substr(0, rest.size() - suffix.size());
  const std::span<const Row> rows = place.layer < 0 ? std::span<const Row>(kOutside) : kLayer;
  for (const Row& row : rows) {
    if (row.hf != stem) continue;
    if (row.n_parts != 1 && (row.n_parts != name.n_parts || row.part != name.part)) continue;
    place.tensor = file.tensor(prefix + std::string(row.gguf) + std::string(suffix));
    if (!place.tensor) continue;
    if (row.n_parts == 1) {
      place.part = name.part;
      place.n_parts = name.n_parts;
    }
    place.is_negative_exp = row.gguf == "ssm_a";
    place.is_query = row.gguf == "attn_q";
    place.is_key = row.gguf == "attn_k";
    return place;
  }
  return std::nullopt;
}

}  // namespace sluice
