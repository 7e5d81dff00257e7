// Regular expressions whose matches have a bounded length.
#pragma once

#include <cstdint>
#include <string_view>

#include "text/regex_grammar.h"

namespace sluice {

/// The matches of `pattern` with between min and max (< 0: no limit) characters, as they stand in a
/// JSON string: the pattern's automaton times a counter. Throws as regex_grammar() does, and
/// kUnsupported if that takes more than 20,000 states, or the pattern's own more than `steps`, of
/// which it leaves the rest.
Expr pattern_of_length(GrammarBuilder& builder, std::string_view pattern, RegexOptions options,
                       int min, int max, int64_t& steps);

}  // namespace sluice
