#include "plan/hypothetical.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace sluice {
namespace {

constexpr double kVocab = 131072, kExperts = 256, kActive = 8;
constexpr const char* kAttention[] = {"gqa", "mla", "hybrid", "compressed"};

PartShape latent_mixer() {
  PartShape part{.kind = "mla", .cache = {{.bytes_16bit = 1152, .bytes_8bit = 576}}};
  part.attention_values = 128 * (2 * 512 + 64);
  return part;
}

PartShape mixer_of(const std::string& attention, double dim, int layer) {
  PartShape part{.kind = "attention"};
  if (attention == "mla") return latent_mixer();
  if (attention == "gqa") {
    part.cache = {{.bytes_16bit = 4096, .bytes_8bit = 2048}};
    part.cache_heads = 8;
    part.attention_values = 2 * dim;
  } else if (attention == "hybrid") {
    if (layer % 4 == 3) return latent_mixer();
    part.kind = "kda";
    part.state_values = 96 * 128 * 128;
  } else {
    const bool sparse = layer % 2 == 0;
    part.kind = sparse ? "compressed+indexer" : "compressed";
    part.cache = {{.bytes_16bit = 1024, .bytes_8bit = 576, .positions = sparse ? 4.0 : 128.0}};
    part.attention_values = 128 * 1024;
    if (sparse) {
      part.cache.front().read = 512;
      part.cache.push_back({.bytes_16bit = 256, .bytes_8bit = 64, .positions = 4});
      part.max_visible = 640;
    }
  }
  return part;
}

}  // namespace

std::vector<std::string> attention_names() {
  return {std::begin(kAttention), std::end(kAttention)};
}

ModelShape hypothetical_model(double total, double active, int layers,
                              const std::string& attention) {
  if (!(total >= 1e6 && total <= 1e15 && active > 0 && active <= total)) {
    throw Error(ErrorCode::kInvalidInput,
                "expected 1M <= total <= 1000T and active <= total, got {:.3g} and {:.3g}", total,
                active);
  }
  if (layers < 1 || layers > 4096) {
    throw Error(ErrorCode::kInvalidInput, "layers: expected 1 to 4096, got {}", layers);
  }
  const std::vector<std::string> known = attention_names();
  if (std::find(known.begin(), known.end(), attention) == known.end()) {
    throw Error(ErrorCode::kInvalidInput, "attention: expected one of {}, got \"{}\"",
                fmt::join(known, ", "), attention);
  }
  ModelShape model;
  // About three quarters of 12 x layers x dim^2, as of models with narrow experts.
  model.dim = std::max(128.0, 128 * std::round(std::sqrt(active / (9.0 * layers)) / 128));
  model.vocab = std::min(kVocab, active / 16 / model.dim);
  model.n_layers = layers;
  model.embedding = {.kind = "embedding", .matrix = model.vocab * model.dim};
  model.head = {.kind = "head", .matrix = model.vocab * model.dim};
  const double routed = (total - active) / (kExperts - kActive);  // one expert of every layer
  const double dense = active - kActive * routed - 2 * model.head.matrix;
  if (dense <= 0) {
    throw Error(ErrorCode::kInvalidInput,
                "active: expected more than {:.3g} ({} of {} experts), got {:.3g}", active - dense,
                kActive, kExperts, active);
  }
  for (int layer = 0; layer < layers; ++layer) {
    PartShape mixer = mixer_of(attention, model.dim, layer);
    PartShape ffn{.kind = routed > 0 ? "experts" : "mlp"};
    mixer.layer = ffn.layer = layer;
    mixer.matrix = dense / layers / 3;
    ffn.matrix = dense / layers * 2 / 3;
    if (routed > 0) {
      ffn.expert = routed / layers;
      ffn.n_experts = int(kExperts);
      ffn.n_active = int(kActive);
    }
    model.blocks.push_back(std::move(mixer));
    model.blocks.push_back(std::move(ffn));
  }
  model.architecture = "hypothetical";
  model.source = "assumed: " + attention + " attention, 256 experts of which 8 are active";
  return model;
}

std::optional<double> parse_count(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, size_t(text.data() + text.size() - end));
  if (error != std::errc() || unit.size() > 1) return std::nullopt;
  const double scale = unit.empty()                 ? 1
                       : unit == "T" || unit == "t" ? 1e12
                       : unit == "B" || unit == "b" ? 1e9
                       : unit == "M" || unit == "m" ? 1e6
                       : unit == "K" || unit == "k" ? 1e3
                                                    : 0;
  return scale > 0 && std::isfinite(value) ? std::optional(value * scale) : std::nullopt;
}

std::optional<ModelShape> hypothetical_named(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t slash = std::min(text.find('/', at), text.size());
    parts.push_back(text.substr(at, slash - at));
    at = slash + 1;
  }
  if (parts.size() != 4) return std::nullopt;
  const std::optional<double> total = parse_count(parts[0]), active = parse_count(parts[1]);
  const std::optional<double> layers = parse_count(parts[2]);
  if (!total || !active || !layers) return std::nullopt;
  constexpr double kMost = std::numeric_limits<int>::max();
  try {
    ModelShape model = hypothetical_model(*total, *active, int(std::clamp(*layers, -kMost, kMost)),
                                          std::string(parts[3]));
    model.name = text;
    return model;
  } catch (const Error& error) {
    throw Error(error.code(), "{}: {}", text, error.what());
  }
}

}  // namespace sluice
