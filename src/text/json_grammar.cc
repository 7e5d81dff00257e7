#include "text/json_grammar.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "text/json_formats.h"
#include "text/json_parts.h"
#include "text/number_grammar.h"
#include "text/pattern_product.h"
#include "text/regex_grammar.h"
#include "text/schema_merge.h"
#include "text/schema_overlap.h"
#include "text/schema_values.h"

namespace sluice {
namespace {

constexpr size_t kMaxBranches = 1000;
constexpr int64_t kMaxSchemas = 50'000;    // compiled, after merging
constexpr int64_t kMaxExpanded = 1 << 20;  // if every use of a definition were written out
constexpr int kMaxMergeDepth = 200;
constexpr int64_t kMaxOverlapSteps = 1'200'000;  // about a second
constexpr int64_t kMaxMatchSteps = 4'000'000;    // of values against patterns
constexpr size_t kMaxRuleName = 100;
constexpr size_t kMaxCopiedBytes = 8u << 20;  // of all schemas that are merged, as text

constexpr const char* kTypes[] = {"object",  "array",   "string", "number",
                                  "integer", "boolean", "null"};

class SchemaCompiler {
 public:
  SchemaCompiler(GrammarBuilder& builder, const OrderedJson& root)
      : builder_(builder), root_(root), parts_(builder) {}

  Expr compile_all() {
    const RuleId start = builder_.declare("root");
    pending_.push_back({start, &root_, builder_.what() + ": #"});
    while (!pending_.empty()) {
      // Definitions wait here instead of on the stack: their chains may be long.
      const Pending next = std::move(pending_.front());
      pending_.pop_front();
      current_ = next.rule;
      builder_.define(next.rule, compile(*next.schema, next.where));
    }
    refuse_explosion(start);
    return builder_.call(start);
  }

 private:
  struct Pending {
    RuleId rule;
    const OrderedJson* schema;  // in the root or in merged_
    std::string where;
  };
  struct Uses {
    int64_t own = 0;  // schemas in the rule itself
    std::vector<RuleId> called;
  };

  [[noreturn]] static void fail(const std::string& where, std::string_view expected,
                                std::string_view got) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected {}, got {}", where, expected, got);
  }

  Expr compile(const OrderedJson& schema, const std::string& where);
  Expr compile_plain(const OrderedJson& schema, const std::string& where);
  Expr compile_branches(const OrderedJson& schema, const char* keyword, const std::string& where);
  void check_one_of(const OrderedJson& branches, const OrderedJson* rest, const std::string& where);
  Expr compile_enum(const OrderedJson& schema, const std::string& where);
  Expr compile_constant(const OrderedJson& value);
  Expr compile_type(const OrderedJson& schema, std::string_view type, const std::string& where);
  Expr compile_object(const OrderedJson& schema, const std::string& where);
  Expr compile_properties(const OrderedJson& properties, const std::set<std::string>& required,
                          std::optional<Expr> additional, const std::string& where);
  Expr compile_array(const OrderedJson& schema, const std::string& where);
  Expr compile_string(const OrderedJson& schema, const std::string& where);
  Expr compile_number(const OrderedJson& schema, bool integer, const std::string& where);

  std::vector<std::string> types_of(const OrderedJson& schema, const std::string& where) const;
  int count(const OrderedJson& schema, const char* keyword, int fallback,
            const std::string& where) const;
  const OrderedJson& resolve(const std::string& reference, const std::string& where) const;
  OrderedJson flattened(const OrderedJson& schema, const std::string& where, int depth);
  Expr call(const std::string& key, const OrderedJson* schema, const std::string& where);
  void charge(const OrderedJson& schema, size_t copies, const std::string& where);
  Expr call_merged(OrderedJson schema, const std::string& where);
  void refuse_explosion(RuleId start) const;

  GrammarBuilder& builder_;
  const OrderedJson& root_;
  JsonParts parts_;
  std::deque<Pending> pending_;
  std::map<std::string, RuleId> rules_;  // by reference, or by text for merged schemas
  std::map<RuleId, Uses> uses_;
  RuleId current_ = 0;
  int64_t n_schemas_ = 0;
  std::deque<OrderedJson> merged_;
  size_t copied_bytes_ = 0;
  int64_t overlap_steps_ = kMaxOverlapSteps;
  int64_t match_steps_ = kMaxMatchSteps;
};

Expr SchemaCompiler::compile(const OrderedJson& schema, const std::string& where) {
  if (++n_schemas_ > kMaxSchemas) fail(where, "at most 50000 schemas", "more");
  ++uses_[current_].own;
  if (schema.is_boolean()) {
    return schema.get<bool>() ? parts_.value() : builder_.literals({});
  }
  if (!schema.is_object()) fail(where, "a schema", schema.type_name());
  check_keywords(schema, where);
  const auto has = [&](const char* keyword) { return schema.contains(keyword); };
  if (has("$ref")) {
    const auto items = schema.items();
    const bool alone = std::all_of(items.begin(), items.end(), [](const auto& item) {
      return item.key() == "$ref" || is_annotation(item.key());
    });
    const auto reference = schema["$ref"].get<std::string>();
    const OrderedJson& target = resolve(reference, where);
    if (alone) return call(reference, &target, builder_.what() + ": " + reference);
  }
  if (has("$ref") || has("allOf") || (has("const") && has("enum")) ||
      (has("anyOf") && has("oneOf"))) {
    return call_merged(flattened(schema, where, 0), where);
  }
  return compile_plain(schema, where);
}

/// Neither "$ref" nor "allOf".
Expr SchemaCompiler::compile_plain(const OrderedJson& schema, const std::string& where) {
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (schema.contains(keyword)) return compile_branches(schema, keyword, where);
  }
  if (schema.contains("enum") || schema.contains("const")) return compile_enum(schema, where);
  std::vector<Expr> choices;
  for (const std::string& type : types_of(schema, where)) {
    choices.push_back(compile_type(schema, type, where));
  }
  return choices.empty() ? builder_.literals({}) : builder_.choice(std::move(choices));
}

Expr SchemaCompiler::compile_branches(const OrderedJson& schema, const char* keyword,
                                      const std::string& where) {
  const OrderedJson& branches = schema[keyword];
  const std::string path = where + "/" + keyword;
  if (branches.empty()) fail(path, "at least one schema", "none");
  if (branches.size() > kMaxBranches) {
    fail(path, "at most 1000 schemas", std::to_string(branches.size()));
  }
  OrderedJson rest = OrderedJson::object();
  for (const auto& [other, value] : schema.items()) {
    if (other != keyword && !is_annotation(other)) rest[other] = value;
  }
  if (keyword == std::string_view("oneOf")) check_one_of(branches, &rest, path);
  if (!rest.empty()) charge(rest, branches.size(), where);
  std::vector<Expr> choices;
  for (size_t i = 0; i < branches.size(); ++i) {
    const std::string branch = fmt::format("{}/{}", path, i);
    if (rest.empty()) {
      choices.push_back(compile(branches[i], branch));
    } else {
      const OrderedJson both{{"allOf", OrderedJson::array({rest, branches[i]})}};
      choices.push_back(call_merged(flattened(both, branch, 0), branch));
    }
  }
  return builder_.choice(std::move(choices));
}

/// A type beside the branches is as good as one in each of them; with other keywords they are
/// merged and then allow what they do not allow alone.
void SchemaCompiler::check_one_of(const OrderedJson& branches, const OrderedJson* rest,
                                  const std::string& where) {
  const auto resolver = [&](const std::string& name) -> const OrderedJson& {
    return resolve(name, where);
  };
  bool narrow = rest && rest->empty();
  OrderedJson typed;
  if (rest && rest->size() == 1 && rest->contains("type")) {
    charge(branches, 1, where);
    typed = branches;
    narrow = std::all_of(typed.begin(), typed.end(), [&](OrderedJson& branch) {
      if (!branch.is_object() || !stands_alone(branch)) return false;
      if (!branch.contains("type")) branch["type"] = (*rest)["type"];
      return true;
    });
  }
  check_disjoint(typed.is_null() ? branches : typed, narrow, resolver, overlap_steps_, where);
}

Expr SchemaCompiler::compile_enum(const OrderedJson& schema, const std::string& where) {
  std::vector<std::string> texts;  // of scalars
  std::vector<Expr> choices;
  for (const OrderedJson& value :
       fitting_values(schema, types_of(schema, where), match_steps_, where)) {
    if (value.is_structured()) {
      choices.push_back(compile_constant(value));
    } else {
      texts.push_back(value.dump());
    }
  }
  choices.push_back(builder_.literals(std::move(texts)));
  return builder_.choice(std::move(choices));
}

Expr SchemaCompiler::compile_constant(const OrderedJson& value) {
  if (!value.is_structured()) return builder_.literal(value.dump());
  std::vector<Expr> parts;
  for (const auto& [name, element] : value.items()) {
    if (!parts.empty()) parts.push_back(parts_.comma());
    Expr part = compile_constant(element);
    if (value.is_object()) {
      part = parts_.member(builder_.literal(OrderedJson(name).dump()), part);
    }
    parts.push_back(part);
  }
  const Expr body = builder_.sequence(std::move(parts));
  return value.is_object() ? parts_.braced(body) : parts_.bracketed(body);
}

std::vector<std::string> SchemaCompiler::types_of(const OrderedJson& schema,
                                                  const std::string& where) const {
  std::vector<std::string> types;
  const auto add = [&](const OrderedJson& type) {
    if (!type.is_string() ||
        std::find(std::begin(kTypes), std::end(kTypes), type) == std::end(kTypes)) {
      fail(where + "/type", "the name of a JSON type", type.dump());
    }
    if (std::find(types.begin(), types.end(), type) == types.end()) types.push_back(type);
  };
  if (schema.contains("type")) {
    const OrderedJson& type = schema["type"];
    if (!type.is_array()) add(type);
    if (type.is_array()) std::for_each(type.begin(), type.end(), add);
    return types;
  }
  const bool listed = schema.contains("enum") || schema.contains("const");
  if (!listed) types = implied_types(schema);
  if (types.empty()) types = {"object", "array", "string", "number", "boolean", "null"};
  return types;
}

Expr SchemaCompiler::compile_type(const OrderedJson& schema, std::string_view type,
                                  const std::string& where) {
  if (type == "object") return compile_object(schema, where);
  if (type == "array") return compile_array(schema, where);
  if (type == "string") return compile_string(schema, where);
  if (type == "boolean") return builder_.literals({"false", "true"});
  if (type == "null") return builder_.literal("null");
  return compile_number(schema, type == "integer", where);
}

int SchemaCompiler::count(const OrderedJson& schema, const char* keyword, int fallback,
                          const std::string& where) const {
  if (!schema.contains(keyword)) return fallback;
  const OrderedJson& value = schema[keyword];
  const double number = value.get<double>();
  if (number < 0 || number != std::floor(number)) {
    fail(where + "/" + keyword, "a whole number", value.dump());
  }
  return static_cast<int>(std::min(number, 1e9));
}

Expr SchemaCompiler::compile_object(const OrderedJson& schema, const std::string& where) {
  const OrderedJson none = OrderedJson::object();
  OrderedJson properties = schema.contains("properties") ? schema["properties"] : none;
  std::set<std::string> required;
  if (schema.contains("required")) {
    for (const OrderedJson& name : schema["required"]) {
      if (!name.is_string()) fail(where + "/required", "names of properties", name.type_name());
      required.insert(name);
      if (!properties.contains(name.get<std::string>())) {
        properties[name.get<std::string>()] = schema.contains("additionalProperties")
                                                  ? schema["additionalProperties"]
                                                  : OrderedJson(true);
      }
    }
  }
  const bool lists = schema.contains("properties") || !properties.empty();
  const bool said = schema.contains("additionalProperties");
  const OrderedJson extra = said ? schema["additionalProperties"] : OrderedJson(!lists);
  std::optional<Expr> additional;
  if (extra != false) additional = compile(extra, where + "/additionalProperties");
  return compile_properties(properties, required, additional, where);
}

/// Two rules per property: what may follow if it is the first, and if some came before it.
Expr SchemaCompiler::compile_properties(const OrderedJson& properties,
                                        const std::set<std::string>& required,
                                        std::optional<Expr> additional, const std::string& where) {
  std::vector<std::string> names;
  std::vector<Expr> members;
  for (const auto& [name, schema] : properties.items()) {
    names.push_back(name);
    const Expr value = compile(schema, where + "/properties/" + name);
    const Expr member = parts_.member(builder_.literal(OrderedJson(name).dump()), value);
    members.push_back(builder_.call(builder_.rule("", member)));
  }
  Expr first = builder_.empty(), later = builder_.empty();
  if (additional) {
    const Expr name = names.empty() ? parts_.string() : parts_.string_except(names);
    const Expr member = builder_.call(builder_.rule("", parts_.member(name, *additional)));
    first = parts_.list(member, 0, -1);
    later = builder_.repeat(builder_.sequence({parts_.comma(), member}), 0, -1);
  }
  first = builder_.call(builder_.rule("", first));
  later = builder_.call(builder_.rule("", later));
  for (size_t i = members.size(); i-- > 0;) {
    const bool must = required.contains(names[i]);
    std::vector<Expr> as_first{builder_.sequence({members[i], later})};
    std::vector<Expr> as_later{builder_.sequence({parts_.comma(), members[i], later})};
    if (!must) {
      as_first.push_back(first);
      as_later.push_back(later);
    }
    first = builder_.call(builder_.rule("", builder_.choice(std::move(as_first))));
    later = builder_.call(builder_.rule("", builder_.choice(std::move(as_later))));
  }
  return parts_.braced(first);
}

Expr SchemaCompiler::compile_array(const OrderedJson& schema, const std::string& where) {
  const int min = count(schema, "minItems", 0, where), max = count(schema, "maxItems", -1, where);
  if (max >= 0 && min > max) {
    fail(where + "/minItems", "at most maxItems", std::to_string(min));
  }
  const OrderedJson none = OrderedJson::array();
  const OrderedJson& prefix = schema.contains("prefixItems") ? schema["prefixItems"] : none;
  const auto n_prefix = static_cast<int>(prefix.size());
  const bool listed = schema.contains("items");
  std::optional<Expr> item;
  if (max != 0 && (listed || n_prefix == 0 || min > n_prefix)) {
    const Expr body = listed ? compile(schema["items"], where + "/items") : parts_.value();
    item = builder_.call(builder_.rule("", body));
  }
  if (n_prefix == 0) {
    return parts_.bracketed(item ? parts_.list(*item, min, max) : builder_.empty());
  }
  const int left = max < 0 ? -1 : std::max(max - n_prefix, 0);
  Expr tail = builder_.empty();
  if (item) {
    tail = builder_.repeat(builder_.sequence({parts_.comma(), *item}), std::max(min - n_prefix, 0),
                           left);
  }
  for (int i = n_prefix; i-- > 0;) {
    if (max >= 0 && i >= max) {
      tail = builder_.empty();
      continue;
    }
    const Expr value =
        compile(prefix[static_cast<size_t>(i)], fmt::format("{}/prefixItems/{}", where, i));
    tail = i == 0 ? builder_.sequence({value, tail})
                  : builder_.sequence({parts_.comma(), value, tail});
    if (min <= i) tail = builder_.optional(tail);
    tail = builder_.call(builder_.rule("", tail));
  }
  return parts_.bracketed(tail);
}

Expr SchemaCompiler::compile_string(const OrderedJson& schema, const std::string& where) {
  const bool has_length = schema.contains("minLength") || schema.contains("maxLength");
  const int min = count(schema, "minLength", 0, where), max = count(schema, "maxLength", -1, where);
  if (max >= 0 && min > max) {
    fail(where + "/minLength", "at most maxLength", std::to_string(min));
  }
  std::vector<TextPattern> patterns;
  for (const char* keyword : {"pattern", "format"}) {
    if (!schema.contains(keyword)) continue;
    const auto& value = schema[keyword].get_ref<const std::string&>();
    const std::string path = where + "/" + keyword;
    const bool is_pattern = keyword == std::string_view("pattern");
    const std::string_view pattern = is_pattern ? value : format_pattern(value);
    if (pattern.empty() && !is_pattern) {
      throw Error(ErrorCode::kUnsupported, "{}: expected one of {}, got \"{}\"", path,
                  format_names(), value);
    }
    patterns.push_back({pattern, {.what = path, .search = is_pattern, .json_string = true}});
  }
  if (!patterns.empty()) {
    const Expr body = has_length || patterns.size() > 1
                          ? pattern_product(builder_, patterns, min, max, match_steps_)
                          : regex_grammar(builder_, patterns[0].text, patterns[0].options);
    // With its quotes: a rule's mask is complete where the rule ends with them.
    return builder_.call(builder_.rule("", parts_.quoted(body)));
  }
  if (!has_length) return parts_.string();
  return parts_.quoted(builder_.repeat(parts_.character(), min, max));
}

Expr SchemaCompiler::compile_number(const OrderedJson& schema, bool integer,
                                    const std::string& where) {
  const NumberRange range = number_range(schema, where);
  if (schema.contains("multipleOf")) {
    const std::string path = where + "/multipleOf";
    return multiple_grammar(builder_, range, to_divisor(schema["multipleOf"], path), integer, path);
  }
  if (!range.low && !range.high) return integer ? parts_.integer() : parts_.number();
  return integer ? integer_grammar(builder_, range) : number_grammar(builder_, range);
}

const OrderedJson& SchemaCompiler::resolve(const std::string& reference,
                                           const std::string& where) const {
  const std::string path = where + "/$ref";
  if (!reference.starts_with('#') || (reference.size() > 1 && reference[1] != '/')) {
    throw Error(ErrorCode::kUnsupported, "{}: expected a pointer into the schema (#/...), got {}",
                path, reference);
  }
  try {
    return root_.at(OrderedJson::json_pointer(reference.substr(1)));
  } catch (const OrderedJson::exception&) {
    fail(path, "a definition that exists", reference);
  }
}

/// One schema without "$ref" and "allOf" that allows what all of them allow.
OrderedJson SchemaCompiler::flattened(const OrderedJson& schema, const std::string& where,
                                      int depth) {
  if (++n_schemas_ > kMaxSchemas) fail(where, "at most 50000 schemas", "more");
  if (depth > kMaxMergeDepth) fail(where, "at most 200 references to follow", "more");
  if (schema.is_boolean()) {
    return schema.get<bool>() ? OrderedJson::object() : OrderedJson{{"enum", OrderedJson::array()}};
  }
  if (!schema.is_object()) fail(where, "a schema", schema.type_name());
  check_keywords(schema, where);
  charge(schema, 1, where);
  if (schema.contains("oneOf")) {
    check_one_of(schema["oneOf"], nullptr, where + "/oneOf");
  }
  OrderedJson result = simplified_schema(schema, where);
  std::vector<OrderedJson> others;
  if (result.contains("$ref")) {
    const auto reference = result["$ref"].get<std::string>();
    others.push_back(resolve(reference, where));
    result.erase("$ref");
  }
  if (result.contains("allOf")) {
    for (const OrderedJson& part : result["allOf"]) others.push_back(part);
    result.erase("allOf");
  }
  for (const OrderedJson& other : others) {
    result = merged_schemas(result, flattened(other, where, depth + 1), where);
    charge(result, 1, where);
  }
  return result;
}

Expr SchemaCompiler::call(const std::string& key, const OrderedJson* schema,
                          const std::string& where) {
  const auto [entry, is_new] = rules_.try_emplace(key, 0);
  if (is_new) {
    entry->second = builder_.declare(key.substr(0, kMaxRuleName));
    pending_.push_back({entry->second, schema, where});
  }
  uses_[current_].called.push_back(entry->second);
  return builder_.call(entry->second);
}

void SchemaCompiler::charge(const OrderedJson& schema, size_t copies, const std::string& where) {
  copied_bytes_ += schema.dump().size() * copies;
  if (copied_bytes_ > kMaxCopiedBytes) fail(where, "at most 8 MiB of merged schemas", "more");
}

/// Equal merged schemas share a rule, so that recursion through "allOf" ends.
Expr SchemaCompiler::call_merged(OrderedJson schema, const std::string& where) {
  const std::string text = schema.dump();
  if (!rules_.contains(text)) merged_.push_back(std::move(schema));
  return call(text, &merged_.back(), where);
}

/// Definitions that use each other can stand for exponentially many schemas.
void SchemaCompiler::refuse_explosion(RuleId start) const {
  std::map<RuleId, int64_t> sizes;  // -1: its uses are being counted
  std::vector<RuleId> stack{start};
  while (!stack.empty()) {
    const RuleId rule = stack.back();
    const auto uses = uses_.find(rule);
    if (const auto [entry, is_new] = sizes.try_emplace(rule, -1); is_new) {
      if (uses == uses_.end()) continue;
      for (const RuleId called : uses->second.called) {
        if (!sizes.contains(called)) stack.push_back(called);
      }
      continue;
    }
    stack.pop_back();
    if (sizes[rule] >= 0) continue;
    int64_t size = 1;
    if (uses != uses_.end()) {
      size += uses->second.own;
      for (const RuleId called : uses->second.called) {
        size = std::min(size + std::max<int64_t>(sizes[called], 0), kMaxExpanded + 1);
      }
    }
    sizes[rule] = size;
    if (size > kMaxExpanded) {
      fail(builder_.what(), "at most 1048576 schemas with all definitions written out", "more");
    }
  }
}

}  // namespace

Expr json_schema_grammar(GrammarBuilder& builder, const OrderedJson& schema) {
  return SchemaCompiler(builder, schema).compile_all();
}

}  // namespace sluice
