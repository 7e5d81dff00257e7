// JSON schemas as grammars.
#pragma once

#include "base/json.h"
#include "text/grammar.h"

namespace sluice {

/// The texts of JSON values that `schema` allows; every match is valid. Narrower than the schema in
/// these points: properties come in the schema's order; without "additionalProperties", none are
/// added to those that "properties" lists, be it none; likewise elements after "prefixItems"
/// without "items"; a schema without "type" that has keywords of one type is of that type; integers
/// have no fraction, multiples no exponent and only the divisor's decimals. "oneOf" needs branches
/// of which no value can match two (schema_overlap.h).
///
/// Throws kUnsupported or kInvalidInput, "WHAT: PATH/KEYWORD: ...", for keywords that are unknown,
/// malformed or not supported, and for schemas of more than 2^20 schemas when written out.
Expr json_schema_grammar(GrammarBuilder& builder, const OrderedJson& schema);

}  // namespace sluice
