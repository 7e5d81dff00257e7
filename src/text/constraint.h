// Grammars as constraints on tokens: JSON schemas, regular expressions, Lark grammars.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/token_constraint.h"
#include "text/grammar.h"
#include "text/vocabulary_trie.h"

namespace sluice {

class CompiledConstraint;
/// What requests share: compile once, start one constraint per choice. Thread-safe.
using ConstraintPtr = std::shared_ptr<const CompiledConstraint>;
using VocabularyPtr = std::shared_ptr<const VocabularyTrie>;

/// A JSON value that `schema` (a draft 2020-12 schema, an object or a boolean) allows, with the
/// properties in the schema's order and at most one space, or a line break and its indentation,
/// between tokens. Numbers have at most 20 digits before and after the point. Throws kInvalidInput
/// naming the keyword and its path for keywords that are unknown, malformed or not supported, and
/// for schemas that are too large; `what` starts every message.
ConstraintPtr compile_json_schema(const OrderedJson& schema, VocabularyPtr vocabulary,
                                  std::string_view what = "schema");
/// Any JSON object.
ConstraintPtr compile_json_object(VocabularyPtr vocabulary);
/// The whole text matches `pattern` (see regex_grammar.h).
ConstraintPtr compile_regex(std::string_view pattern, VocabularyPtr vocabulary,
                            std::string_view what = "regex");
ConstraintPtr compile_grammar(Grammar grammar, VocabularyPtr vocabulary);

/// A constraint at the start of the text. End tokens are allowed exactly where the text may end. At
/// least the last 256 tokens can be rolled back.
std::unique_ptr<TokenConstraint> start_constraint(ConstraintPtr compiled);

}  // namespace sluice
