// Lark grammars as grammars.
#pragma once

#include <string_view>

#include "text/grammar.h"

namespace sluice {

/// The texts of the rule "start". Understood are rules, terminals, strings ("..."i too), ranges
/// ("a".."z"), regular expressions (see regex_grammar.h; the flags i, s, m, u), ( ), [ ], |, ?, *,
/// +, ~n, ~n..m, aliases, priorities (which decide nothing here), %import common.NAME and %ignore.
/// Ignored terminals may stand before every terminal of a rule. Lexing is not greedy: all texts of
/// the rules are allowed. `json_string`: the text stands inside a JSON string.
///
/// Throws kUnsupported or kInvalidInput, "WHAT: line N: ...", for everything else.
Expr lark_grammar(GrammarBuilder& builder, std::string_view text, bool json_string = false);

}  // namespace sluice
