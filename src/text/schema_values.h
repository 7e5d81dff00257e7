// Values that a schema lists, and what its other keywords say of them.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "text/number_grammar.h"

namespace sluice {

/// The bounds of numbers in `schema`, the narrower of two. Throws as to_decimal() does.
NumberRange number_range(const OrderedJson& schema, const std::string& where);

/// The values of "enum" or "const" that the other keywords allow. Throws kUnsupported naming
/// "format" and keywords of objects and arrays beside such values, and what takes more than `steps`
/// to match, of which it leaves the rest. Errors of "pattern" as of regex_grammar().
std::vector<OrderedJson> fitting_values(const OrderedJson& schema,
                                        const std::vector<std::string>& types, int64_t& steps,
                                        const std::string& where);

}  // namespace sluice
