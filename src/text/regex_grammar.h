// Regular expressions as grammars.
#pragma once

#include <string>
#include <string_view>

#include "text/grammar.h"

namespace sluice {

struct RegexOptions {
  std::string what;          // starts error messages; empty: the builder's
  bool search = false;       // unanchored ends match anything, as in JSON Schema's "pattern"
  bool json_string = false;  // the text stands inside a JSON string: characters may be escaped
  bool ignore_case = false;  // of ASCII letters
  bool dot_all = false;      // "." matches line breaks too
};

/// Classes, escapes, groups, alternation, quantifiers (lazy ones match the same texts) and the
/// anchors ^ and $ at the ends of the outermost alternatives. \d, \w and \s are those of ASCII.
/// Throws kUnsupported naming look-around, back references, \b, \p and inline flags, kInvalidInput
/// for errors of syntax.
Expr regex_grammar(GrammarBuilder& builder, std::string_view pattern,
                   const RegexOptions& options = {});

/// A character of `set` as it stands in a JSON string.
Expr json_characters(GrammarBuilder& builder, const CharSet& set);

}  // namespace sluice
