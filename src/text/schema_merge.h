// The intersection of JSON schemas ("allOf"), as far as it can be written as one schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sluice {

inline constexpr size_t kMaxProperties = 5000;  // of one object, listed or required

/// Whether the keyword restricts nothing: "title", "description", "$defs", ...
bool is_annotation(std::string_view keyword);
/// The types that have keywords in `schema`: what it stands for without "type".
std::vector<std::string> implied_types(const OrderedJson& schema);
/// Whether only `schema` itself says what it allows: it is not made of others, and lists no values.
bool stands_alone(const OrderedJson& schema);
/// Throws kUnsupported or kInvalidInput naming `where` and the keyword if one of `schema`, which is
/// an object, is not known or has a value of the wrong type.
void check_keywords(const OrderedJson& schema, const std::string& where);
/// Without annotations, "const" as "enum" and "oneOf" as "anyOf". `schema` was checked.
OrderedJson simplified_schema(const OrderedJson& schema, const std::string& where);
/// The schema that both allow. Both are simplified and have neither "$ref" nor "allOf". Where
/// values of properties or elements meet, the result holds {"allOf": [...]}. Throws kUnsupported.
OrderedJson merged_schemas(const OrderedJson& a, const OrderedJson& b, const std::string& where);

}  // namespace sluice
