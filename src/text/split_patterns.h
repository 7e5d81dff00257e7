// The split patterns that GGUF files name instead of storing them (tokenizer.ggml.pre).
#pragma once

#include <string_view>
#include <vector>

namespace sluice {

struct SplitPatterns {
  std::vector<std::string_view> patterns{};  // applied one after the other, matches isolated
  bool ignore_merges = false;
  bool nfc = false;       // the original tokenizer composes (NFC) first
  bool adds_bos = false;  // unless the file says otherwise
  bool lowercase = false;
};

/// nullptr for an unknown name.
const SplitPatterns* find_split_patterns(std::string_view name);

/// The pattern of Kimi K2's tokenizer, for tiktoken files.
extern const std::string_view kKimiPattern;
/// The pattern of Llama 3 and cl100k.
extern const std::string_view kLlama3Pattern;

}  // namespace sluice
