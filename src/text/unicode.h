// UTF-8 and the Unicode properties that tokenizers depend on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;

struct CodePoint {
  char32_t value = 0;   // U+FFFD if not valid
  uint32_t length = 0;  // bytes: of the character, or of the maximal invalid part
  bool valid = false;
  bool truncated = false;  // not valid only because the text ends
};

/// The code point at `position` < text.size(). Surrogates and over-long forms are invalid.
CodePoint decode_utf8(std::string_view text, size_t position);
void append_utf8(std::string& out, char32_t code_point);
bool is_valid_utf8(std::string_view text);
/// Appends `text` with one U+FFFD per maximal invalid part.
void append_valid_utf8(std::string& out, std::string_view text);

/// Calls f(code_point, bytes as string_view) for every character of valid `text`.
template <typename F>
void for_each_char(std::string_view text, F&& f) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    f(c.value, text.substr(at, c.length));
    at += c.length;
  }
}

/// Makes valid UTF-8 of bytes that arrive in pieces.
class Utf8Stream {
 public:
  void push(std::string_view bytes, std::string& out);
  void finish(std::string& out);  // an incomplete character becomes U+FFFD

 private:
  std::string held_;  // the start of a character; at most 3 bytes
};

bool is_space(char32_t c);              // property White_Space
bool is_numeric(char32_t c);            // categories N*
bool is_punctuation(char32_t c);        // ASCII punctuation and categories P*
bool is_word(char32_t c);               // alphabetic, marks, decimal digits, connectors, joiners
bool is_nonspacing_mark(char32_t c);    // category Mn
bool is_mark(char32_t c);               // categories M*
bool is_control_or_format(char32_t c);  // categories Cc, Cf, Co
bool is_cjk_ideograph(char32_t c);      // the blocks that BERT splits into characters

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };
/// Linear in the text but for sorting runs of combining marks (n log n). `text` must be valid.
std::string normalize(std::string_view text, NormalForm form);
/// Full lower-case mapping without context.
std::string lowercase(std::string_view text);
/// Bytes of the extended grapheme cluster that starts `text` (not empty, valid).
size_t grapheme_length(std::string_view text);

/// The character that byte-level vocabularies write for a byte, and back (-1 if it stands for
/// none). Printable Latin-1 stands for itself, the other 68 bytes are numbered up from U+0100
/// (GPT-2).
char32_t byte_to_char(uint8_t byte);
int char_to_byte(char32_t c);
/// The bytes of a byte-level name ("Ġthe" is " the"); nothing if a character stands for no byte.
std::optional<std::string> bytes_of_name(std::string_view name);

}  // namespace sluice
