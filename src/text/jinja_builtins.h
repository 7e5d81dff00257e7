// Filters, tests, methods and global functions: tables of C++ functions with Python signatures.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace sluice::jinja {

class Runtime;

/// The arguments of a call, as written.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  const Value* find(std::string_view name) const;
};

/// The arguments of a call in the order of a signature. The typed getters take null and none for
/// "not given", and throw when the argument is of another type.
struct Bound {
  std::array<const Value*, 6> slot{};
  const Arguments* all = nullptr;

  bool given(size_t i) const { return slot[i] && !slot[i]->is_none(); }
  const Value& operator[](size_t i) const { return *slot[i]; }
  int64_t integer(size_t i, int64_t fallback) const;
  bool flag(size_t i, bool fallback) const;
  std::string text(size_t i, std::string_view fallback) const;
};

/// `signature` names the parameters: "width blank?" has a required and an optional one; "*" takes
/// any further arguments, found in Bound::all. `self` is the input of a filter or test, the object
/// of a method.
struct Builtin {
  std::string_view name;
  std::string_view signature;
  Value (*function)(Runtime& runtime, const Value& self, const Bound& arguments);
};

Value call_builtin(const Builtin& builtin, Runtime& runtime, const Value& self,
                   const Arguments& arguments);

/// Null when there is none of that name.
const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_global(std::string_view name);
const Builtin* find_method(const Value& object, std::string_view name);
/// Whether Python's type has an attribute that templates may not use (list.append, dict.update).
bool is_forbidden_method(const Value& object, std::string_view name);

std::span<const Builtin> text_filters();
std::span<const Builtin> list_filters();
std::span<const Builtin> value_filters();
std::span<const Builtin> tests();
std::span<const Builtin> globals();
std::span<const Builtin> string_methods();
std::span<const Builtin> string_predicates();
std::span<const Builtin> list_methods();
std::span<const Builtin> dict_methods();

/// json.dumps. `indent` < 0 writes one line; otherwise lines begin with `indent` spaces per level.
struct JsonStyle {
  bool ascii = false;
  bool sort_keys = false;
  std::string indent_unit;
  bool multiline = false;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
std::string dump_json(const Value& value, const JsonStyle& style);

/// "format % arguments" of Python.
Value format_percent(const String& format, const Value& arguments);
/// format.format(...) of Python.
Value format_braces(Runtime& runtime, const String& format, const Arguments& arguments);

std::string escape_html(std::string_view text);
/// The text of a value; escaped unless it is safe already.
std::string escaped_text(const Value& value);

}  // namespace sluice::jinja
