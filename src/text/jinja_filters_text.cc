// Filters on text.
#include <algorithm>

#include "text/jinja_objects.h"
#include "text/jinja_text.h"

namespace sluice::jinja {
namespace {

Value filter_upper(Runtime&, const Value& self, const Bound&) { return to_upper(to_text(self)); }
Value filter_lower(Runtime&, const Value& self, const Bound&) { return to_lower(to_text(self)); }
Value filter_capitalize(Runtime&, const Value& self, const Bound&) {
  return to_capitalized(to_text(self));
}

bool separates_words(char32_t c) {
  return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

/// Unlike str.title, only white space and -({[< separate words.
Value filter_title(Runtime&, const Value& self, const Bound&) {
  const std::string text = to_text(self);
  std::string out;
  for (size_t begin = 0; begin < text.size();) {
    size_t first = begin;  // past the first letter
    const bool is_word = !separates_words(next_code_point(text, first));
    size_t end = first;
    for (size_t next = first; is_word && next < text.size(); end = next) {
      if (separates_words(next_code_point(text, next))) break;
    }
    out += to_upper(std::string_view(text).substr(begin, first - begin));
    out += to_lower(std::string_view(text).substr(first, end - first));
    begin = end;
  }
  return out;
}

Value filter_trim(Runtime&, const Value& self, const Bound& arguments) {
  const std::string text = to_text(self);
  const std::string characters = arguments.text(0, "");
  return strip(text, arguments.given(0) ? &characters : nullptr);
}

Value filter_replace(Runtime&, const Value& self, const Bound& arguments) {
  const std::string text = to_text(self), from = to_text(arguments[0]), to = to_text(arguments[1]);
  spend_search(text.size(), from.size());
  check_text_size(text.size() + count_occurrences(text, from) * to.size());
  return replace_all(text, from, to, arguments.integer(2, -1));
}

Value filter_indent(Runtime&, const Value& self, const Bound& arguments) {
  std::string unit = "    ";
  if (arguments.given(0)) {
    if (const String* s = arguments[0].string()) {
      unit = s->text;
    } else {
      const int64_t width = std::max<int64_t>(arguments.integer(0, 4), 0);
      check_text_size(size_t(width));
      unit = std::string(size_t(width), ' ');
    }
  }
  const std::string text = to_text(self) + "\n";
  const std::vector<std::string_view> lines = split_lines(text);
  const bool blank = arguments.flag(2, false);
  check_text_size(text.size() + lines.size() * unit.size());
  std::string out = arguments.flag(1, false) ? unit : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i) out += '\n';
    if (i && (blank || !lines[i].empty())) out += unit;
    out += lines[i];
  }
  return out;
}

Value filter_truncate(Runtime&, const Value& self, const Bound& arguments) {
  const Value text = to_text(self);
  const std::string end = arguments.text(2, "...");
  const auto n_end = int64_t(count_code_points(end));
  const int64_t length = arguments.integer(0, 255), leeway = arguments.integer(3, 5);
  if (length < n_end || leeway < 0) fail("truncate: the length is shorter than the end");
  if (int64_t(text.string()->n_code_points) - leeway <= length) return text;
  const Value kept = slice(text, Value(), length - n_end, Value());
  const std::string& head = kept.string()->text;
  if (arguments.flag(1, false)) return head + end;
  return head.substr(0, head.rfind(' ')) + end;
}

Value filter_word_count(Runtime&, const Value& self, const Bound&) {
  const std::string text = to_text(self);
  size_t n = 0;
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    const bool is_word = c == '_' || is_alpha(c) || is_numeric(c);
    n += is_word && !in_word;
    in_word = is_word;
  }
  return n;
}

Value filter_center(Runtime&, const Value& self, const Bound& arguments) {
  const Value text = to_text(self);
  const auto n = int64_t(text.string()->n_code_points);
  const int64_t margin = std::max<int64_t>(arguments.integer(0, 80) - n, 0);
  check_text_size(size_t(margin));
  const int64_t left = margin / 2 + (margin & (n + margin) & 1);
  return std::string(size_t(left), ' ') + text.string()->text +
         std::string(size_t(margin - left), ' ');
}

Value filter_escape(Runtime&, const Value& self, const Bound&) {
  return Value(escaped_text(self), Safety::kSafe);
}

Value filter_force_escape(Runtime&, const Value& self, const Bound&) {
  return Value(escape_html(to_text(self)), Safety::kSafe);
}

Value filter_safe(Runtime&, const Value& self, const Bound&) {
  return Value(to_text(self), Safety::kSafe);
}

Value filter_string(Runtime&, const Value& self, const Bound&) {
  return self.string() ? self : Value(to_text(self));
}

Value filter_format(Runtime&, const Value& self, const Bound& arguments) {
  const Value text = to_text(self);
  const Arguments& all = *arguments.all;
  if (all.named.empty()) return format_percent(*text.string(), Value::tuple(all.positional));
  if (!all.positional.empty())
    fail("can't handle positional and keyword arguments at the same time");
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [name, value] : all.named) entries.emplace_back(name, value);
  return format_percent(*text.string(), Value::dict(std::move(entries)));
}

std::string percent_encode(std::string_view text, std::string_view safe) {
  spend(text.size());
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos ||
                       safe.find(c) != safe.npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string encode_query(const Value& value) {
  std::string encoded = percent_encode(to_text(value), "");
  return replace_all(encoded, "%20", "+");
}

Value filter_url_encode(Runtime&, const Value& self, const Bound&) {
  if (self.string() || (!self.dict() && !self.sequence()))
    return percent_encode(to_text(self), "/");
  const SequencePtr pairs = self.dict()
                                ? DictView(self.shared_dict(), DictView::Part::kItems).iterate()
                                : self.shared_sequence();
  std::string out;
  for (const Value& pair : pairs->items) {
    const SequencePtr parts = iterate(pair);
    if (parts->items.size() != 2) fail("urlencode needs pairs of key and value");
    if (!out.empty()) out += '&';
    out += encode_query(parts->items[0]) + "=" + encode_query(parts->items[1]);
  }
  return out;
}

constexpr Builtin kFilters[] = {
    {"upper", "", filter_upper},
    {"lower", "", filter_lower},
    {"capitalize", "", filter_capitalize},
    {"title", "", filter_title},
    {"trim", "chars?", filter_trim},
    {"replace", "old new count?", filter_replace},
    {"indent", "width? first? blank?", filter_indent},
    {"truncate", "length? killwords? end? leeway?", filter_truncate},
    {"wordcount", "", filter_word_count},
    {"center", "width?", filter_center},
    {"escape", "", filter_escape},
    {"e", "", filter_escape},
    {"forceescape", "", filter_force_escape},
    {"safe", "", filter_safe},
    {"string", "", filter_string},
    {"format", "*", filter_format},
    {"urlencode", "", filter_url_encode},
};

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&#34;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string escaped_text(const Value& value) {
  const String* s = value.string();
  return s && s->safety == Safety::kSafe ? s->text : escape_html(to_text(value));
}

std::span<const Builtin> text_filters() { return kFilters; }

}  // namespace sluice::jinja
