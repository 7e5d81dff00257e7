#include "text/jinja_builtins.h"

#include <algorithm>
#include <unordered_map>

#include "text/jinja_objects.h"

namespace sluice::jinja {
namespace {

using Table = std::unordered_map<std::string_view, const Builtin*>;

Table make_table(std::initializer_list<std::span<const Builtin>> parts) {
  Table table;
  for (const auto part : parts) {
    for (const Builtin& builtin : part) table.emplace(builtin.name, &builtin);
  }
  return table;
}

const Builtin* find_in(const Table& table, std::string_view name) {
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

/// The next word of a signature, which loses it.
std::string_view take_word(std::string_view& signature) {
  const size_t end = std::min(signature.find(' '), signature.size());
  const std::string_view word = signature.substr(0, end);
  signature.remove_prefix(std::min(end + 1, signature.size()));
  return word;
}

}  // namespace

const Value* Arguments::find(std::string_view name) const {
  for (const auto& [known, value] : named) {
    if (known == name) return &value;
  }
  return nullptr;
}

int64_t Bound::integer(size_t i, int64_t fallback) const {
  return given(i) ? to_int64(*slot[i]) : fallback;
}

bool Bound::flag(size_t i, bool fallback) const { return given(i) ? truthy(*slot[i]) : fallback; }

std::string Bound::text(size_t i, std::string_view fallback) const {
  if (!given(i)) return std::string(fallback);
  if (const Undefined* undefined = slot[i]->undefined()) fail_undefined(*undefined);
  if (!slot[i]->string()) fail("expected a string argument, got '{}'", type_name(*slot[i]));
  spend(slot[i]->string()->text.size() / 64);
  return slot[i]->string()->text;
}

Value call_builtin(const Builtin& builtin, Runtime& runtime, const Value& self,
                   const Arguments& arguments) {
  if (const String* text = self.string()) spend(text->text.size() / 4);  // most look at all of it
  Bound bound;
  bound.all = &arguments;
  size_t n_slots = 0, n_named = 0;
  bool takes_more = false;
  for (std::string_view rest = builtin.signature; !rest.empty();) {
    std::string_view name = take_word(rest);
    if (name == "*") {
      takes_more = true;
      break;
    }
    const bool optional = name.ends_with('?');
    if (optional) name.remove_suffix(1);
    const size_t i = n_slots++;
    const Value* named = arguments.find(name);
    n_named += named != nullptr;
    if (i < arguments.positional.size()) {
      if (named) fail("{}() got multiple values for argument '{}'", builtin.name, name);
      bound.slot[i] = &arguments.positional[i];
    } else {
      bound.slot[i] = named;
    }
    if (!bound.slot[i] && !optional) fail("{}() misses the argument '{}'", builtin.name, name);
  }
  if (!takes_more && arguments.positional.size() > n_slots) {
    fail("{}() takes {} arguments, got {}", builtin.name, n_slots, arguments.positional.size());
  }
  if (!takes_more && n_named < arguments.named.size()) {
    fail("{}() got an unexpected keyword argument", builtin.name);
  }
  return builtin.function(runtime, self, bound);
}

const Builtin* find_filter(std::string_view name) {
  static const Table table = make_table({text_filters(), list_filters(), value_filters()});
  return find_in(table, name);
}

const Builtin* find_test(std::string_view name) {
  static const Table table = make_table({tests()});
  return find_in(table, name);
}

const Builtin* find_global(std::string_view name) {
  static const Table table = make_table({globals()});
  return find_in(table, name);
}

const Builtin* find_method(const Value& object, std::string_view name) {
  static const Table of_strings = make_table({string_methods(), string_predicates()});
  static const Table of_lists = make_table({list_methods()});
  static const Table of_dicts = make_table({dict_methods()});
  if (object.string()) return find_in(of_strings, name);
  if (object.sequence()) return find_in(of_lists, name);
  if (object.dict()) return find_in(of_dicts, name);
  return object.object() ? find_object_method(*object.object(), name) : nullptr;
}

bool is_forbidden_method(const Value& object, std::string_view name) {
  static constexpr std::string_view kOfLists[] = {"append", "clear", "pop",    "reverse",
                                                  "insert", "sort",  "extend", "remove"};
  static constexpr std::string_view kOfDicts[] = {"clear", "pop", "popitem", "setdefault",
                                                  "update"};
  const auto is_in = [&](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  if (const Sequence* s = object.sequence()) return s->is_list() && is_in(kOfLists);
  return object.dict() && is_in(kOfDicts);
}

}  // namespace sluice::jinja
