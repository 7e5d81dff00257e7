// Token ids to text, one at a time, as a stream of whole code points.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace sluice {

class DecodeStream;
class Tokenizer;

/// The concatenation of all results equals Tokenizer::decode() of all ids. A character that is
/// spread over several tokens is held back until it is complete or proven invalid (then U+FFFD).
class Detokenizer {
 public:
  /// `tokenizer` must outlive the detokenizer.
  explicit Detokenizer(const Tokenizer& tokenizer, bool skip_special = false);
  ~Detokenizer();
  Detokenizer(Detokenizer&&) noexcept;
  Detokenizer& operator=(Detokenizer&&) noexcept;

  /// Goes on behind `before`, of which only the end matters: a character that it leaves unfinished,
  /// and that a space after it is not the start of a text.
  void follow(std::span<const int32_t> before);
  /// The text that is certain after this token; often empty inside a character.
  std::string push(int32_t id);
  /// What was held back; call once, after the last token.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::unique_ptr<DecodeStream> stream_;
};

}  // namespace sluice
