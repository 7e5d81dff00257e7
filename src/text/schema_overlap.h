// Whether a value can match two schemas at once, as far as it can be told quickly.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"

namespace sluice {

/// The schema that a "$ref" names.
using SchemaResolver = std::function<const OrderedJson&(const std::string& reference)>;

/// Throws kUnsupported naming two of `branches`, an array, unless it can be shown that no value
/// matches two: by types, constants, bounds, lengths, or a property that one of two requires and
/// whose schemas are again such. If `narrow`, each branch stands for itself and is compiled as
/// json_schema_grammar() says, narrower than it reads, and only what it can write counts. Takes at
/// most `steps`, of which it leaves the rest.
void check_disjoint(const OrderedJson& branches, bool narrow, const SchemaResolver& resolve,
                    int64_t& steps, const std::string& where);

}  // namespace sluice
