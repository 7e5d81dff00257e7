// The parts of Hugging Face's tokenizer.json.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "text/json_node.h"
#include "text/tokenizer_parts.h"

namespace sluice {

std::unique_ptr<TokenizerParts> parts_from_json(std::string_view text, std::string_view what);

NormalizerPtr normalizer_from_json(const JsonNode& node);

struct PreTokenizerSpec {
  PreTokenizerPtr pre_tokenizer;  // may be null
  /// The pieces are written byte by byte at the end, so the model works on bytes.
  bool bytes = false;
};
PreTokenizerSpec pre_tokenizer_from_json(const JsonNode& node);
std::vector<DecoderPtr> decoders_from_json(const JsonNode& node);
/// Sets prefix_ids and suffix_ids.
void post_processor_from_json(const JsonNode& node, TokenizerParts& parts);

/// The largest id + 1 that a vocabulary of `n` entries may have: room for holes, not for hostile
/// ids.
int64_t id_limit(size_t n);

}  // namespace sluice
