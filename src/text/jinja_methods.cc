// Methods of str.
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

#include "text/jinja_objects.h"
#include "text/jinja_text.h"

namespace sluice::jinja {
namespace {

const std::string& text_of(const Value& self) { return self.string()->text; }

Value like(const Value& self, std::string text) {
  return Value(std::move(text), self.string()->safety);
}

Value views_to_list(const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.emplace_back(part);
  return Value::list(std::move(items));
}

template <std::string (*change)(std::string_view)>
Value method_change(Runtime&, const Value& self, const Bound&) {
  return like(self, change(text_of(self)));
}

template <bool left, bool right>
Value method_strip(Runtime&, const Value& self, const Bound& arguments) {
  const std::string characters = arguments.text(0, "");
  const auto kept = strip(text_of(self), arguments.given(0) ? &characters : nullptr, left, right);
  return like(self, std::string(kept));
}

template <bool from_right>
Value method_split(Runtime&, const Value& self, const Bound& arguments) {
  const std::string separator = arguments.text(0, "");
  if (arguments.given(0) && separator.empty()) fail("empty separator");
  const std::string& text = text_of(self);
  // The pieces are listed twice before they are values that charge for themselves.
  spend_search(text.size(), separator.size());
  const size_t n = arguments.given(0) ? count_occurrences(text, separator) : text.size() / 2;
  const Charge pieces(n * sizeof(std::string_view));
  const std::string* by = arguments.given(0) ? &separator : nullptr;
  const int64_t limit = arguments.integer(1, -1);
  return views_to_list(from_right ? split_from_right(text, by, limit) : split(text, by, limit));
}

Value method_splitlines(Runtime&, const Value& self, const Bound& arguments) {
  return views_to_list(split_lines(text_of(self), arguments.flag(0, false)));
}

Value method_replace(Runtime&, const Value& self, const Bound& arguments) {
  const std::string from = arguments.text(0, ""), to = arguments.text(1, "");
  spend_search(text_of(self).size(), from.size());
  check_text_size(text_of(self).size() + count_occurrences(text_of(self), from) * to.size());
  return like(self, replace_all(text_of(self), from, to, arguments.integer(2, -1)));
}

/// The part [start, end), which `clipped` may hold, that find, count and startswith look at; false
/// if start is past the end.
bool clip_part(const Value& self, const Bound& arguments, Value& clipped, std::string_view& part,
               int64_t& offset) {
  const auto length = int64_t(self.string()->n_code_points);
  offset = 0;
  if (!arguments.given(1) && !arguments.given(2)) {
    part = text_of(self);
    return true;
  }
  const Value start = arguments.given(1) ? arguments[1] : Value(0);
  const Value end = arguments.given(2) ? arguments[2] : Value(length);
  offset = to_int64(start);
  if (offset < 0) offset = std::max<int64_t>(offset + length, 0);
  clipped = slice(self, start, end, Value());
  part = text_of(clipped);
  return offset <= length;
}

template <bool at_end>
Value method_starts_or_ends(Runtime&, const Value& self, const Bound& arguments) {
  Value clipped;
  std::string_view part;
  int64_t offset = 0;
  if (!clip_part(self, arguments, clipped, part, offset)) return false;
  const auto matches = [&](const Value& affix) {
    if (!affix.string()) {
      fail("{} first arg must be str or a tuple of str, not {}", at_end ? "endswith" : "startswith",
           type_name(affix));
    }
    return at_end ? part.ends_with(text_of(affix)) : part.starts_with(text_of(affix));
  };
  const Sequence* choices = arguments[0].sequence();
  if (!choices || choices->is_list()) return matches(arguments[0]);
  return std::any_of(choices->items.begin(), choices->items.end(), matches);
}

template <bool from_right, bool must_exist>
Value method_find(Runtime&, const Value& self, const Bound& arguments) {
  const std::string wanted = arguments.text(0, "");
  Value clipped;
  std::string_view part;
  int64_t offset = 0;
  const bool in_text = clip_part(self, arguments, clipped, part, offset);
  spend_search(part.size(), wanted.size());
  const size_t found = from_right ? part.rfind(wanted) : part.find(wanted);
  if (in_text && found != part.npos) {
    return offset + int64_t(count_code_points(part.substr(0, found)));
  }
  if (must_exist) fail("substring not found");
  return -1;
}

Value method_count(Runtime&, const Value& self, const Bound& arguments) {
  Value clipped;
  std::string_view part;
  int64_t offset = 0;
  if (!clip_part(self, arguments, clipped, part, offset)) return 0;
  const std::string wanted = arguments.text(0, "");
  spend_search(part.size(), wanted.size());
  return count_occurrences(part, wanted);
}

Value method_join(Runtime&, const Value& self, const Bound& arguments) {
  const SequencePtr items = iterate(arguments[0]);
  Output text;
  for (size_t i = 0; i < items->items.size(); ++i) {
    const Value& item = items->items[i];
    if (const Undefined* undefined = item.undefined()) fail_undefined(*undefined);
    if (!item.string()) {
      fail("sequence item {}: expected str instance, {} found", i, type_name(item));
    }
    if (i) text.append(text_of(self));
    text.append(self.string()->safety == Safety::kSafe ? escaped_text(item) : text_of(item));
  }
  return like(self, text.take());
}

Value method_format(Runtime& runtime, const Value& self, const Bound& arguments) {
  return format_braces(runtime, *self.string(), *arguments.all);
}

Value method_format_map(Runtime& runtime, const Value& self, const Bound& arguments) {
  if (!arguments[0].dict()) fail("format_map() expects a mapping");
  Arguments named;
  for (const auto& [key, value] : arguments[0].dict()->entries) {
    if (key.string()) named.named.emplace_back(text_of(key), value);
  }
  return format_braces(runtime, *self.string(), named);
}

/// ljust, rjust and center; `side` is where the text goes.
template <char side>
Value method_justify(Runtime&, const Value& self, const Bound& arguments) {
  const auto n = int64_t(self.string()->n_code_points);
  const int64_t width = arguments.integer(0, 0);
  const int64_t margin = std::max<int64_t>(width - n, 0);
  const std::string fill = arguments.text(1, " ");
  if (count_code_points(fill) != 1) fail("The fill character must be exactly one character long");
  check_text_size(size_t(margin) * fill.size());
  const int64_t left = side == '<' ? 0 : side == '>' ? margin : margin / 2 + (margin & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text_of(self);
  for (int64_t i = left; i < margin; ++i) out += fill;
  return like(self, std::move(out));
}

Value method_zfill(Runtime&, const Value& self, const Bound& arguments) {
  const std::string& text = text_of(self);
  const int64_t missing = arguments.integer(0, 0) - int64_t(self.string()->n_code_points);
  if (missing <= 0) return self;
  check_text_size(size_t(missing));
  const size_t n_signs = text.starts_with('-') || text.starts_with('+');
  return like(self,
              text.substr(0, n_signs) + std::string(size_t(missing), '0') + text.substr(n_signs));
}

template <bool from_right>
Value method_partition(Runtime&, const Value& self, const Bound& arguments) {
  const std::string separator = arguments.text(0, "");
  if (separator.empty()) fail("empty separator");
  const std::string& text = text_of(self);
  spend_search(text.size(), separator.size());
  const size_t found = from_right ? text.rfind(separator) : text.find(separator);
  if (found == text.npos) {
    return from_right ? Value::tuple({"", "", self}) : Value::tuple({self, "", ""});
  }
  return Value::tuple({text.substr(0, found), separator, text.substr(found + separator.size())});
}

template <bool at_end>
Value method_remove_affix(Runtime&, const Value& self, const Bound& arguments) {
  const std::string affix = arguments.text(0, "");
  std::string text = text_of(self);
  if (!at_end && text.starts_with(affix)) return like(self, text.substr(affix.size()));
  if (at_end && text.ends_with(affix)) text.resize(text.size() - affix.size());
  return like(self, std::move(text));
}

Value method_expandtabs(Runtime&, const Value& self, const Bound& arguments) {
  const int64_t size = std::clamp<int64_t>(arguments.integer(0, 8), 0, 1 << 16);
  const std::string& text = text_of(self);
  check_text_size(text.size() + size_t(size) * size_t(std::count(text.begin(), text.end(), '\t')));
  std::string out;
  int64_t column = 0;
  for (const char c : text) {
    if (c == '\t') {
      const int64_t n = size ? size - column % size : 0;
      out.append(size_t(n), ' ');
      column += n;
      continue;
    }
    out += c;
    column = c == '\n' || c == '\r' ? 0 : column + ((c & 0xc0) != 0x80);
  }
  return like(self, std::move(out));
}

std::string fold(std::string_view text) {
  utf8proc_uint8_t* folded = nullptr;
  const auto n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                              utf8proc_ssize_t(text.size()), &folded, UTF8PROC_CASEFOLD);
  if (n < 0) return std::string(text);
  const std::string out(reinterpret_cast<const char*>(folded), size_t(n));
  std::free(folded);
  return out;
}

constexpr Builtin kMethods[] = {
    {"strip", "chars?", method_strip<true, true>},
    {"lstrip", "chars?", method_strip<true, false>},
    {"rstrip", "chars?", method_strip<false, true>},
    {"split", "sep? maxsplit?", method_split<false>},
    {"rsplit", "sep? maxsplit?", method_split<true>},
    {"splitlines", "keepends?", method_splitlines},
    {"replace", "old new count?", method_replace},
    {"startswith", "prefix start? end?", method_starts_or_ends<false>},
    {"endswith", "suffix start? end?", method_starts_or_ends<true>},
    {"find", "sub start? end?", method_find<false, false>},
    {"rfind", "sub start? end?", method_find<true, false>},
    {"index", "sub start? end?", method_find<false, true>},
    {"rindex", "sub start? end?", method_find<true, true>},
    {"count", "sub start? end?", method_count},
    {"join", "iterable", method_join},
    {"format", "*", method_format},
    {"format_map", "mapping", method_format_map},
    {"upper", "", method_change<to_upper>},
    {"lower", "", method_change<to_lower>},
    {"casefold", "", method_change<fold>},
    {"title", "", method_change<to_title>},
    {"capitalize", "", method_change<to_capitalized>},
    {"swapcase", "", method_change<swap_case>},
    {"ljust", "width fillchar?", method_justify<'<'>},
    {"rjust", "width fillchar?", method_justify<'>'>},
    {"center", "width fillchar?", method_justify<'^'>},
    {"zfill", "width", method_zfill},
    {"partition", "sep", method_partition<false>},
    {"rpartition", "sep", method_partition<true>},
    {"removeprefix", "prefix", method_remove_affix<false>},
    {"removesuffix", "suffix", method_remove_affix<true>},
    {"expandtabs", "tabsize?", method_expandtabs},
};

}  // namespace

std::span<const Builtin> string_methods() { return kMethods; }

}  // namespace sluice::jinja
