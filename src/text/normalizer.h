// Rewriting of text before it is split: Unicode normal forms, replacements, prefixes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/regex.h"
#include "text/unicode.h"

namespace sluice {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// `text` is and stays valid UTF-8.
  virtual void apply(std::string& text) const = 0;
};

using NormalizerPtr = std::unique_ptr<const Normalizer>;

NormalizerPtr make_sequence(std::vector<NormalizerPtr> parts);
NormalizerPtr make_unicode_form(NormalForm form);
NormalizerPtr make_lowercase();
NormalizerPtr make_strip(bool left, bool right);
NormalizerPtr make_strip_accents();
/// Removes controls and turns exotic spaces into U+0020, as SentencePiece's NMT rules.
NormalizerPtr make_nmt();
/// Puts `prefix` before text that is not empty.
NormalizerPtr make_prepend(std::string prefix);
NormalizerPtr make_replace(Regex pattern, std::string content);
NormalizerPtr make_replace(std::string literal, std::string content);
/// Writes every byte as the character that stands for it (byte_to_char).
NormalizerPtr make_byte_level_normalizer();

struct BertOptions {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool strip_accents = true;
  bool lowercase = true;
};
NormalizerPtr make_bert(const BertOptions& options);

/// SentencePiece's compiled rules: a double-array trie from byte strings to replacements.
/// Format: u32 bytes of the trie, trie units (u32), replacements ended by NUL; little endian.
class CharsMap {
 public:
  CharsMap() = default;
  /// Throws kInvalidInput naming `what`.
  CharsMap(std::string_view blob, std::string_view what);

  struct Match {
    size_t length = 0;  // bytes of the text; 0 if no rule fits
    std::string_view replacement;
  };
  Match longest(std::string_view text) const { return walk(text, false); }
  Match shortest(std::string_view text) const { return walk(text, true); }
  bool empty() const { return units_.empty(); }

 private:
  Match walk(std::string_view text, bool stop_at_first) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

/// Hugging Face's "Precompiled": the rules applied to grapheme clusters, then to characters.
NormalizerPtr make_precompiled(CharsMap map);

struct SentencePieceRules {
  CharsMap map;
  TokenTrie user_defined{};  // pieces that pass unchanged
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;
  bool whitespace_as_suffix = false;
};
/// SentencePiece's own normaliser.
NormalizerPtr make_sentencepiece_normalizer(SentencePieceRules rules);

}  // namespace sluice
