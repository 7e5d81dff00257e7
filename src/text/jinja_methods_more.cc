// The predicates of str, and the methods of lists, tuples and dicts that do not change them.
#include <algorithm>

#include "text/jinja_objects.h"
#include "text/jinja_text.h"

namespace sluice::jinja {
namespace {

/// str.isX: not empty, and every code point is in the class.
template <bool (*is)(char32_t)>
Value all_of(Runtime&, const Value& self, const Bound&) {
  const std::string& text = self.string()->text;
  for (size_t i = 0; i < text.size();) {
    if (!is(next_code_point(text, i))) return false;
  }
  return !text.empty();
}

bool is_alphanumeric(char32_t c) { return is_alpha(c) || is_numeric(c); }

Value is_ascii_text(Runtime&, const Value& self, const Bound&) {
  return self.string()->n_code_points == self.string()->text.size();
}

Value is_printable_text(Runtime& runtime, const Value& self, const Bound& arguments) {
  return self.string()->text.empty() ? Value(true) : all_of<is_printable>(runtime, self, arguments);
}

template <bool (*is)(char32_t)>
Value cased_only(Runtime&, const Value& self, const Bound&) {
  const std::string& text = self.string()->text;
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    if (!is_cased(c)) continue;
    if (!is(c)) return false;
    found = true;
  }
  return found;
}

Value is_title_text(Runtime&, const Value& self, const Bound&) {
  const std::string& text = self.string()->text;
  bool found = false, in_word = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    if (is_cased(c) && is_lower(c) != in_word) return false;
    in_word = is_cased(c);
    found |= in_word;
  }
  return found;
}

Value is_identifier(Runtime&, const Value& self, const Bound&) {
  const std::string& text = self.string()->text;
  for (size_t i = 0; i < text.size();) {
    const bool first = i == 0;
    const char32_t c = next_code_point(text, i);
    if (c != '_' && !is_alpha(c) && (first || !is_numeric(c))) return false;
  }
  return !text.empty();
}

Value sequence_index(Runtime&, const Value& self, const Bound& arguments) {
  const auto& items = self.sequence()->items;
  const auto n = int64_t(items.size());
  const auto bound = [&](size_t argument, int64_t fallback) {
    const int64_t i = arguments.integer(argument, fallback);
    return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n);
  };
  const int64_t end = bound(2, n);
  for (int64_t i = bound(1, 0); i < end; ++i) {
    if (equal(items[size_t(i)], arguments[0])) return i;
  }
  fail("{} is not in list", repr(arguments[0]));
}

Value sequence_count(Runtime&, const Value& self, const Bound& arguments) {
  const auto& items = self.sequence()->items;
  return size_t(std::count_if(items.begin(), items.end(),
                              [&](const Value& item) { return equal(item, arguments[0]); }));
}

Value copy(Runtime&, const Value& self, const Bound&) { return self; }

Value dict_get(Runtime&, const Value& self, const Bound& arguments) {
  ValueHash()(arguments[0]);
  if (const Value* found = self.dict()->find(arguments[0])) return *found;
  return arguments.slot[1] ? arguments[1] : Value();
}

template <DictView::Part part>
Value dict_view(Runtime&, const Value& self, const Bound&) {
  return ObjectPtr(std::make_shared<DictView>(self.shared_dict(), part));
}

constexpr Builtin kStringPredicates[] = {
    {"isalpha", "", all_of<is_alpha>},        {"isdigit", "", all_of<is_digit>},
    {"isdecimal", "", all_of<is_decimal>},    {"isnumeric", "", all_of<is_numeric>},
    {"isalnum", "", all_of<is_alphanumeric>}, {"isspace", "", all_of<is_space>},
    {"isascii", "", is_ascii_text},           {"isprintable", "", is_printable_text},
    {"isupper", "", cased_only<is_upper>},    {"islower", "", cased_only<is_lower>},
    {"istitle", "", is_title_text},           {"isidentifier", "", is_identifier},
};

constexpr Builtin kListMethods[] = {
    {"index", "value start? stop?", sequence_index},
    {"count", "value", sequence_count},
    {"copy", "", copy},
};

constexpr Builtin kDictMethods[] = {
    {"get", "key default?", dict_get},
    {"items", "", dict_view<DictView::Part::kItems>},
    {"keys", "", dict_view<DictView::Part::kKeys>},
    {"values", "", dict_view<DictView::Part::kValues>},
    {"copy", "", copy},
};

}  // namespace

std::span<const Builtin> string_predicates() { return kStringPredicates; }
std::span<const Builtin> list_methods() { return kListMethods; }
std::span<const Builtin> dict_methods() { return kDictMethods; }

}  // namespace sluice::jinja
