// Split patterns of tokenizers, run by PCRE2 with just-in-time compilation.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {

/// Rewrites what tokenizer files use beyond PCRE2 (Oniguruma's and Rust's `[a&&[^b]]` and nested
/// classes, \uHHHH) or with other meaning (\s is White_Space, \w has marks and connectors, \h is a
/// hexadecimal digit). Throws kInvalidInput naming `what` on unbalanced classes.
std::string translate_pattern(std::string_view pattern, std::string_view what);
/// The pattern that matches `text` literally.
std::string quote_pattern(std::string_view text);

class Regex {
 public:
  /// Throws kInvalidInput naming `what` if `pattern` (before translation) does not compile.
  Regex(std::string_view pattern, std::string_view what);

  /// [begin, end) of the first match at or after `from`. `text` must be valid UTF-8 and `from` a
  /// character boundary. Throws kResource when the pattern exceeds its match limit.
  std::optional<std::pair<size_t, size_t>> find(std::string_view text, size_t from) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
  std::string what_;
};

}  // namespace sluice
