// GGUF metadata -> config.json.
#pragma once

#include "base/json.h"
#include "weights/gguf.h"

namespace sluice {

/// What Sluice knows about a value of "general.architecture".
struct GgufArchitecture {
  std::string_view name;        // "qwen3moe"
  std::string_view model_type;  // Hugging Face's names for it
  std::string_view class_name;
  bool is_interleaved;  // q and k rows are stored with rotary pairs as neighbours
  void (*add_keys)(const GgufFile& file, Json& config);  // beyond the common ones; may be nullptr
};

/// Throws kUnsupported for an architecture that is not in the table.
const GgufArchitecture& gguf_architecture(const GgufFile& file);

/// The config with the keys that Hugging Face gives this architecture.
Config config_from_gguf(const GgufFile& file);

/// Heads of a layer: the metadata hold one number for all layers or a list. Throws kInvalidInput.
int64_t gguf_query_heads(const GgufFile& file, int layer);
int64_t gguf_key_heads(const GgufFile& file, int layer);

}  // namespace sluice
