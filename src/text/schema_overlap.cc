#include "text/schema_overlap.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "base/error.h"
#include "text/number_grammar.h"
#include "text/pattern_product.h"
#include "text/schema_merge.h"

namespace sluice {
namespace {

constexpr int kMaxDepth = 60;
constexpr double kMostCompared = 1e18;  // of numbers

/// A schema, and whether it counts as its grammar, which may be narrower, or as it reads.
struct Side {
  const OrderedJson* schema;
  bool narrow;
  const OrderedJson* find(const char* keyword) const {
    const auto found = schema->find(keyword);
    return found == schema->end() ? nullptr : &*found;
  }
};

bool has_type(const OrderedJson& value, std::string_view type) {
  // A whole number with a fraction of zeros is an integer as well.
  if (type == "integer" || type == "number") return value.is_number();
  return type == value.type_name();
}

/// Of objects and arrays only the size is compared.
bool may_equal(const OrderedJson& a, const OrderedJson& b) {
  if (!a.is_structured() || !b.is_structured()) return a == b;
  return a.type() == b.type() && a.size() == b.size();
}

class Comparison {
 public:
  Comparison(const SchemaResolver& resolve, int64_t& steps, const std::string& where)
      : resolve_(resolve), steps_(steps), where_(where) {}

  /// True only if no value matches both. A pair that is being compared, as in recursive schemas,
  /// counts as one that may overlap.
  bool disjoint(const Side& a, const Side& b, int depth) {
    spend(1);
    if (depth > kMaxDepth) return false;
    if (*a.schema == false || *b.schema == false) return true;
    if (!a.schema->is_object() || !b.schema->is_object()) return false;
    if (depth == 0) return disjoint_parts(a, b, depth);
    const auto [entry, is_new] =
        known_.try_emplace(std::tuple(a.schema, a.narrow, b.schema, b.narrow), false);
    if (is_new) entry->second = disjoint_parts(a, b, depth);
    return entry->second;
  }

 private:
  bool disjoint_parts(const Side& a, const Side& b, int depth) {
    return parts_disjoint(a, b, depth) || parts_disjoint(b, a, depth) ||
           values_disjoint(a, b, depth) || types_disjoint(a, b, depth);
  }

  void spend(size_t steps) {
    steps_ -= static_cast<int64_t>(steps);
    if (steps_ < 0) {
      throw Error(ErrorCode::kUnsupported,
                  "{}: expected branches that can be compared quickly, got more (use \"anyOf\")",
                  where_);
    }
  }

  /// Of schemas that are made of others, it is enough that one that must hold, or all of which one
  /// must hold, are disjoint with the other side.
  bool parts_disjoint(const Side& a, const Side& b, int depth) {
    const auto alone = [&] {
      size_t n = 0;
      for (const auto& [keyword, value] : a.schema->items()) n += is_annotation(keyword) ? 0 : 1;
      return n == 1;
    };
    const auto part_disjoint = [&](const OrderedJson& part) {
      return disjoint({&part, a.narrow && alone()}, b, depth + 1);
    };
    const OrderedJson* reference = a.find("$ref");
    if (reference && reference->is_string() &&
        part_disjoint(resolve_(reference->get<std::string>()))) {
      return true;
    }
    const OrderedJson* all = a.find("allOf");
    if (all && all->is_array()) {
      for (const OrderedJson& part : *all) {
        if (disjoint({&part, false}, b, depth + 1)) return true;
      }
    }
    for (const char* keyword : {"anyOf", "oneOf"}) {
      const OrderedJson* any = a.find(keyword);
      if (any && any->is_array() && std::all_of(any->begin(), any->end(), part_disjoint)) {
        return true;
      }
    }
    return false;
  }

  using Values = std::optional<std::span<const OrderedJson>>;
  static Values listed(const Side& side) {
    if (const OrderedJson* value = side.find("const")) return std::span(value, 1);
    const OrderedJson* values = side.find("enum");
    if (!values || !values->is_array()) return std::nullopt;
    return std::span<const OrderedJson>(values->get_ref<const OrderedJson::array_t&>());
  }

  bool values_disjoint(const Side& a, const Side& b, int depth) {
    const Values left = listed(a), right = listed(b);
    if (left && right) {
      spend(left->size() * right->size());
      return std::none_of(left->begin(), left->end(), [&](const OrderedJson& x) {
        return std::any_of(right->begin(), right->end(),
                           [&](const OrderedJson& y) { return may_equal(x, y); });
      });
    }
    if (!left && !right) return false;
    const Side& other = left ? b : a;
    const auto values = left ? *left : *right;
    return std::all_of(values.begin(), values.end(), [&](const OrderedJson& value) {
      return cannot_match(value, other, depth + 1);
    });
  }

  bool cannot_match(const OrderedJson& value, const Side& side, int depth) {
    spend(1);
    const std::vector<std::string> types = types_of(side);
    if (std::none_of(types.begin(), types.end(),
                     [&](const std::string& type) { return has_type(value, type); })) {
      return true;
    }
    if (value.is_number()) {
      const OrderedJson point{{"minimum", value}, {"maximum", value}};
      return ranges_disjoint({&point, false}, side);
    }
    if (!value.is_object() || depth > kMaxDepth) return false;
    if (required(side, [&](const std::string& name) { return !value.contains(name); })) return true;
    for (const auto& [name, member] : value.items()) {
      const Side schema = property(side, name);
      if (*schema.schema == false) return true;
      const OrderedJson constant{{"const", member}};
      if (schema.schema->is_object() &&
          Comparison(resolve_, steps_, where_).disjoint({&constant, false}, schema, depth + 1)) {
        return true;
      }
    }
    return false;
  }

  static std::vector<std::string> types_of(const Side& side) {
    const OrderedJson* type = side.find("type");
    std::vector<std::string> types;
    if (type && type->is_string()) types = {type->get<std::string>()};
    if (type && type->is_array()) {
      for (const OrderedJson& one : *type) {
        if (one.is_string()) types.push_back(one);
      }
    }
    if (!type && side.narrow && stands_alone(*side.schema)) types = implied_types(*side.schema);
    if (!type && types.empty()) types = {"object", "array", "string", "number", "boolean", "null"};
    return types;
  }

  bool types_disjoint(const Side& a, const Side& b, int depth) {
    const std::vector<std::string> right = types_of(b);
    const auto is_number = [](const std::string& type) {
      return type == "integer" || type == "number";
    };
    for (const std::string& x : types_of(a)) {
      for (const std::string& y : right) {
        if (x != y && !(is_number(x) && is_number(y))) continue;
        const bool apart = is_number(x)    ? ranges_disjoint(a, b)
                           : x == "string" ? strings_disjoint(a, b)
                           : x == "array"  ? counts_disjoint(a, b, "minItems", "maxItems")
                           : x == "object"
                               ? objects_disjoint(a, b, depth) || objects_disjoint(b, a, depth)
                               : false;
        if (!apart) return false;
      }
    }
    return true;
  }

  struct Range {
    std::optional<NumberBound> low, high;
    bool low_above(const Range& other) const {
      if (!low || !other.high) return false;
      const int order = compare(low->value, other.high->value);
      return order > 0 || (order == 0 && (low->exclusive || other.high->exclusive));
    }
  };
  /// One bound of two is enough to tell apart.
  Range range(const Side& side) const {
    Range result;
    const auto read = [&](const char* keyword, std::optional<NumberBound>& bound, bool exclusive) {
      const OrderedJson* value = side.find(keyword);
      if (!value || !value->is_number() || std::abs(value->get<double>()) > kMostCompared) return;
      bound = {to_decimal(*value, where_), exclusive};
    };
    read("minimum", result.low, false);
    read("exclusiveMinimum", result.low, true);
    read("maximum", result.high, false);
    read("exclusiveMaximum", result.high, true);
    return result;
  }

  bool ranges_disjoint(const Side& a, const Side& b) const {
    const Range left = range(a), right = range(b);
    return left.low_above(right) || right.low_above(left);
  }

  static bool counts_disjoint(const Side& a, const Side& b, const char* min, const char* max) {
    const auto below = [&](const Side& x, const Side& y) {
      const OrderedJson* most = x.find(max);
      const OrderedJson* least = y.find(min);
      return most && least && most->is_number() && least->is_number() &&
             most->get<double>() < least->get<double>();
    };
    return below(a, b) || below(b, a);
  }

  bool strings_disjoint(const Side& a, const Side& b) {
    if (counts_disjoint(a, b, "minLength", "maxLength")) return true;
    const OrderedJson *left = a.find("pattern"), *right = b.find("pattern");
    if (!left || !right || !left->is_string() || !right->is_string()) return false;
    const RegexOptions options{.what = where_, .search = true};
    const TextPattern patterns[] = {{left->get_ref<const std::string&>(), options},
                                    {right->get_ref<const std::string&>(), options}};
    try {
      return !patterns_meet(patterns, steps_);
    } catch (const Error&) {  // a pattern that is wrong says so where it is compiled
      return false;
    }
  }

  /// Whether `test` holds for a name that is required.
  template <typename Test>
  bool required(const Side& side, const Test& test) {
    const OrderedJson* names = side.find("required");
    if (!names || !names->is_array()) return false;
    return std::any_of(names->begin(), names->end(), [&](const OrderedJson& name) {
      spend(1);
      return name.is_string() && test(name.get<std::string>());
    });
  }

  /// What a property of this name must match.
  Side property(const Side& side, const std::string& name) {
    static const OrderedJson kAny = true, kNone = false;
    const bool narrow = side.narrow && stands_alone(*side.schema);
    const OrderedJson* properties = side.find("properties");
    if (properties && properties->is_object()) {
      spend(1 + properties->size() / 8);
      const auto found = properties->find(name);
      if (found != properties->end()) return {&*found, narrow};
    }
    if (const OrderedJson* additional = side.find("additionalProperties")) {
      return {additional, narrow};
    }
    const auto same = [&](const std::string& other) { return other == name; };
    const OrderedJson* names = side.find("required");
    const bool lists = properties || (names && !names->empty());
    return {narrow && lists && !required(side, same) ? &kNone : &kAny, false};
  }

  bool objects_disjoint(const Side& a, const Side& b, int depth) {
    return required(a, [&](const std::string& name) {
      return disjoint(property(a, name), property(b, name), depth + 1);
    });
  }

  const SchemaResolver& resolve_;
  int64_t& steps_;
  const std::string& where_;
  std::map<std::tuple<const OrderedJson*, bool, const OrderedJson*, bool>, bool> known_;
};

}  // namespace

void check_disjoint(const OrderedJson& branches, bool narrow, const SchemaResolver& resolve,
                    int64_t& steps, const std::string& where) {
  Comparison comparison(resolve, steps, where);
  for (size_t i = 0; i < branches.size(); ++i) {
    for (size_t k = i + 1; k < branches.size(); ++k) {
      const OrderedJson *a = &branches[i], *b = &branches[k];
      const bool apart = comparison.disjoint({a, false}, {b, false}, 0) ||
                         (narrow && comparison.disjoint({a, true}, {b, false}, 0) &&
                          comparison.disjoint({a, false}, {b, true}, 0));
      if (apart) continue;
      throw Error(ErrorCode::kUnsupported,
                  "{}: expected schemas of which a value matches at most one, got {} and {}, which "
                  "may both match (use \"anyOf\" if they may)",
                  where, i, k);
    }
  }
}

}  // namespace sluice
