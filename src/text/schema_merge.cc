#include "text/schema_merge.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "text/number_grammar.h"

namespace sluice {
namespace {

constexpr size_t kMaxProduct = 1000;          // branches of two "anyOf" that meet
constexpr size_t kMaxProductBytes = 4 << 20;  // as text
constexpr size_t kMaxCompared = 4'000'000;    // pairs of two lists of values
constexpr int kMaxExactDigits = 15;           // of any decimal number in JSON

const std::set<std::string_view> kAnnotations = {"title",
                                                 "description",
                                                 "default",
                                                 "examples",
                                                 "example",
                                                 "deprecated",
                                                 "readOnly",
                                                 "writeOnly",
                                                 "$comment",
                                                 "$schema",
                                                 "$id",
                                                 "id",
                                                 "$defs",
                                                 "definitions",
                                                 "strict",
                                                 "$vocabulary",
                                                 "contentMediaType",
                                                 "discriminator",  // OpenAPI's hint beside oneOf
                                                 "contentEncoding"};
const std::set<std::string_view> kKeywords = {"$ref",
                                              "allOf",
                                              "anyOf",
                                              "oneOf",
                                              "enum",
                                              "const",
                                              "type",
                                              "pattern",
                                              "format",
                                              "minLength",
                                              "maxLength",
                                              "minimum",
                                              "maximum",
                                              "exclusiveMinimum",
                                              "exclusiveMaximum",
                                              "multipleOf",
                                              "properties",
                                              "required",
                                              "additionalProperties",
                                              "items",
                                              "prefixItems",
                                              "minItems",
                                              "maxItems"};

const std::map<std::string_view, std::string_view> kTypeOfKeyword = {
    {"properties", "object"}, {"required", "object"},         {"additionalProperties", "object"},
    {"items", "array"},       {"prefixItems", "array"},       {"minItems", "array"},
    {"maxItems", "array"},    {"pattern", "string"},          {"format", "string"},
    {"minLength", "string"},  {"maxLength", "string"},        {"minimum", "number"},
    {"maximum", "number"},    {"exclusiveMinimum", "number"}, {"exclusiveMaximum", "number"},
    {"multipleOf", "number"}};

[[noreturn]] void refuse(const std::string& where, std::string_view keyword,
                         std::string_view expected) {
  throw Error(ErrorCode::kUnsupported, "{}/{}: expected {}", where, keyword, expected);
}

OrderedJson both(const OrderedJson& a, const OrderedJson& b) {
  if (a == b || b == true) return a;
  if (a == true) return b;
  return {{"allOf", OrderedJson::array({a, b})}};
}

OrderedJson merged_types(const OrderedJson& a, const OrderedJson& b) {
  const auto list = [](const OrderedJson& type) {
    return type.is_array() ? type : OrderedJson::array({type});
  };
  OrderedJson result = OrderedJson::array();
  for (const OrderedJson& x : list(a)) {
    for (const OrderedJson& y : list(b)) {
      if (x == y || (x == "integer" && y == "number")) result.push_back(x);
      if (x == "number" && y == "integer") result.push_back(y);
    }
  }
  return result;
}

OrderedJson intersection(const OrderedJson& a, const OrderedJson& b, const std::string& where) {
  if (a.size() * b.size() > kMaxCompared) refuse(where, "enum", "shorter lists");
  OrderedJson result = OrderedJson::array();
  for (const OrderedJson& value : a) {
    if (std::find(b.begin(), b.end(), value) != b.end()) result.push_back(value);
  }
  return result;
}

OrderedJson joined(const OrderedJson& a, const OrderedJson& b) {
  OrderedJson result = a;
  for (const OrderedJson& value : b) {
    if (std::find(a.begin(), a.end(), value) == a.end()) result.push_back(value);
  }
  return result;
}

OrderedJson product(const OrderedJson& a, const OrderedJson& b, const std::string& where) {
  if (a.size() * b.size() > kMaxProduct ||
      a.dump().size() * b.size() + b.dump().size() * a.size() > kMaxProductBytes) {
    refuse(where, "anyOf", "at most 1000 combinations of 4 MiB together");
  }
  OrderedJson result = OrderedJson::array();
  for (const OrderedJson& x : a) {
    for (const OrderedJson& y : b) result.push_back(both(x, y));
  }
  return result;
}

/// Properties of both; one that only one side lists must be what the other allows in addition.
OrderedJson merged_properties(const OrderedJson& a, const OrderedJson& b) {
  const auto list = [](const OrderedJson& schema) {
    return schema.contains("properties") ? OrderedJson(schema["properties"])
                                         : OrderedJson::object();
  };
  const auto additional = [](const OrderedJson& schema) -> OrderedJson {
    return schema.contains("additionalProperties") ? OrderedJson(schema["additionalProperties"])
                                                   : OrderedJson(true);
  };
  const OrderedJson left = list(a), right = list(b);
  OrderedJson result = OrderedJson::object();
  for (const auto& [name, schema] : left.items()) {
    result[name] = both(schema, right.contains(name) ? OrderedJson(right[name]) : additional(b));
  }
  for (const auto& [name, schema] : right.items()) {
    if (!left.contains(name)) result[name] = both(schema, additional(a));
  }
  return result;
}

/// The least number that both divide.
OrderedJson common_multiple(const OrderedJson& a, const OrderedJson& b, const std::string& where) {
  const std::string path = where + "/multipleOf";
  const Divisor x = to_divisor(a, path), y = to_divisor(b, path);
  const int decimals = std::max(x.decimals, y.decimals);
  const WideInteger left = x.step * power_of_ten(decimals - x.decimals);
  const WideInteger right = y.step * power_of_ten(decimals - y.decimals);
  WideInteger divisor = left;
  for (WideInteger rest = right; rest != 0;) divisor = std::exchange(rest, divisor % rest);
  // Neither factor nor product may have more digits than their types hold.
  const WideInteger limit = power_of_ten(kMaxExactDigits);
  if (left / divisor >= limit / right) refuse(where, "multipleOf", "a smaller common multiple");
  std::string digits = std::to_string(static_cast<int64_t>(left / divisor * right));
  if (decimals > 0) digits += "e-" + std::to_string(decimals);
  return OrderedJson::parse(digits);
}

OrderedJson merged_value(const std::string& keyword, const OrderedJson& a, const OrderedJson& b,
                         const std::string& where) {
  if (a == b) return a;
  if (keyword == "type") return merged_types(a, b);
  if (keyword == "enum") return intersection(a, b, where);
  if (keyword == "required") return joined(a, b);
  if (keyword == "anyOf") return product(a, b, where);
  if (keyword == "items" || keyword == "additionalProperties") return both(a, b);
  if (keyword == "multipleOf") return common_multiple(a, b, where);
  if (keyword.starts_with("min") || keyword == "exclusiveMinimum") return std::max(a, b);
  if (keyword.starts_with("max") || keyword == "exclusiveMaximum") return std::min(a, b);
  refuse(where, keyword, "one value, got two that must both hold");
}

void check_shapes(const OrderedJson& schema, const std::string& where) {
  const auto expect = [&](const char* keyword, bool (OrderedJson::*is)() const noexcept,
                          const char* shape) {
    if (schema.contains(keyword) && !(schema[keyword].*is)()) {
      throw Error(ErrorCode::kInvalidInput, "{}/{}: expected {}, got {}", where, keyword, shape,
                  schema[keyword].type_name());
    }
  };
  for (const char* keyword : {"allOf", "anyOf", "oneOf", "enum", "required", "prefixItems"}) {
    expect(keyword, &OrderedJson::is_array, "an array");
  }
  expect("properties", &OrderedJson::is_object, "an object");
  for (const char* keyword : {"$ref", "pattern", "format"}) {
    expect(keyword, &OrderedJson::is_string, "a string");
  }
  for (const char* keyword : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                              "multipleOf", "minLength", "maxLength", "minItems", "maxItems"}) {
    expect(keyword, &OrderedJson::is_number, "a number");
  }
}

}  // namespace

bool is_annotation(std::string_view keyword) {
  return kAnnotations.contains(keyword) || keyword.starts_with("x-");
}

std::vector<std::string> implied_types(const OrderedJson& schema) {
  std::vector<std::string> types;
  for (const auto& [keyword, value] : schema.items()) {
    const auto implied = kTypeOfKeyword.find(keyword);
    if (implied == kTypeOfKeyword.end()) continue;
    const std::string type(implied->second);
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  }
  return types;
}

bool stands_alone(const OrderedJson& schema) {
  const auto stands_in = [&](const char* keyword) { return schema.contains(keyword); };
  constexpr const char* kMerged[] = {"$ref", "allOf", "anyOf", "oneOf", "enum", "const"};
  return std::none_of(std::begin(kMerged), std::end(kMerged), stands_in);
}

void check_keywords(const OrderedJson& schema, const std::string& where) {
  for (const auto& [keyword, value] : schema.items()) {
    if (!is_annotation(keyword) && !kKeywords.contains(keyword)) {
      refuse(where, keyword, "a supported keyword");
    }
  }
  check_shapes(schema, where);
  for (const char* keyword : {"properties", "required"}) {
    if (schema.contains(keyword) && schema[keyword].size() > kMaxProperties) {
      refuse(where, keyword, "at most 5000 properties");
    }
  }
}

OrderedJson simplified_schema(const OrderedJson& schema, const std::string& where) {
  OrderedJson result = OrderedJson::object();
  for (const auto& [keyword, value] : schema.items()) {
    if (is_annotation(keyword) || keyword == "const" || keyword == "oneOf") continue;
    result[keyword] = value;
  }
  if (schema.contains("const")) {
    const OrderedJson one = OrderedJson::array({schema["const"]});
    result["enum"] = result.contains("enum") ? intersection(result["enum"], one, where) : one;
  }
  if (schema.contains("oneOf")) {
    const OrderedJson& one_of = schema["oneOf"];
    result["anyOf"] = result.contains("anyOf") ? product(result["anyOf"], one_of, where) : one_of;
  }
  return result;
}

OrderedJson merged_schemas(const OrderedJson& a, const OrderedJson& b, const std::string& where) {
  OrderedJson result = a;
  for (const auto& [keyword, value] : b.items()) {
    if (keyword == "properties") continue;
    if ((keyword == "prefixItems" && a.contains("items") && !a.contains(keyword)) ||
        (keyword == "items" && a.contains("prefixItems") && !a.contains(keyword))) {
      refuse(where, keyword, "either \"items\" or \"prefixItems\" in schemas that must both hold");
    }
    result[keyword] = value;
    if (a.contains(keyword)) result[keyword] = merged_value(keyword, a[keyword], value, where);
  }
  if (a.contains("properties") || b.contains("properties")) {
    result["properties"] = merged_properties(a, b);
  }
  return result;
}

}  // namespace sluice
