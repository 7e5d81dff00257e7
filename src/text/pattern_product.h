// Regular expressions that must match at once, as grammars.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "text/regex_grammar.h"

namespace sluice {

struct TextPattern {
  std::string_view text;
  RegexOptions options;
};

/// The texts with between min and max (< 0: no limit) characters that all of `patterns`, at least
/// one, match, as they stand in a JSON string: the product of the patterns' automata and a counter.
/// Throws as regex_grammar() does, and kUnsupported if that takes more than 20,000 states or more
/// than `steps`, of which it leaves the rest.
Expr pattern_product(GrammarBuilder& builder, std::span<const TextPattern> patterns, int min,
                     int max, int64_t& steps);

/// Whether a text matches all of `patterns`, at least one. Throws likewise.
bool patterns_meet(std::span<const TextPattern> patterns, int64_t& steps);

}  // namespace sluice
