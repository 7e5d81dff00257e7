#include "text/jinja_text.h"

#include <utf8proc.h>

#include <algorithm>

namespace sluice::jinja {
namespace {

struct SpecialCase {
  char32_t letter;
  const char* upper;
  const char* title;
};

constexpr SpecialCase kSpecialCases[] = {
#include "text/jinja_case.inc"
};

const SpecialCase* special_case(char32_t c) {
  if (c < 0x80) return nullptr;
  const auto* end = std::end(kSpecialCases);
  const auto* found =
      std::lower_bound(std::begin(kSpecialCases), end, c,
                       [](const SpecialCase& s, char32_t k) { return s.letter < k; });
  return found != end && found->letter == c ? found : nullptr;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(utf8proc_int32_t(c)); }

void append_upper(std::string& out, char32_t c) {
  if (const SpecialCase* special = special_case(c)) {
    out += special->upper;
  } else {
    append_code_point(out, char32_t(utf8proc_toupper(utf8proc_int32_t(c))));
  }
}

void append_title(std::string& out, char32_t c) {
  if (const SpecialCase* special = special_case(c)) {
    out += special->title;
  } else {
    append_code_point(out, char32_t(utf8proc_totitle(utf8proc_int32_t(c))));
  }
}

bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xb7 || c == 0x2018 || c == 0x2019;
  }
}

/// A capital sigma at byte `at` becomes a final sigma after a letter and before none.
bool is_final_sigma(std::string_view text, size_t at, size_t after) {
  bool letter_before = false;
  while (at > 0) {
    const char32_t c = previous_code_point(text, at);
    if (is_case_ignorable(c)) continue;
    letter_before = is_cased(c);
    break;
  }
  while (letter_before && after < text.size()) {
    const char32_t c = next_code_point(text, after);
    if (is_case_ignorable(c)) continue;
    return !is_cased(c);
  }
  return letter_before;
}

void append_lower(std::string& out, std::string_view text, size_t at, size_t after, char32_t c) {
  if (c == 0x130) {  // dotted capital I
    out += "i\u0307";
  } else if (c == 0x3a3) {
    append_code_point(out, is_final_sigma(text, at, after) ? 0x3c2 : 0x3c3);
  } else {
    append_code_point(out, char32_t(utf8proc_tolower(utf8proc_int32_t(c))));
  }
}

/// Maps every code point; `map(out, start, end, code point)` appends what it becomes.
template <typename Map>
std::string transform(std::string_view text, Map map) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const char32_t c = next_code_point(text, i);
    map(out, start, i, c);
  }
  return out;
}

}  // namespace

char32_t next_code_point(std::string_view text, size_t& position) {
  const auto byte = [&](size_t i) { return char32_t(static_cast<unsigned char>(text[i])); };
  const char32_t first = byte(position);
  const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length == 1 || position + length > text.size()) {
    ++position;
    return first;
  }
  char32_t c = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) c = (c << 6) | (byte(position + i) & 0x3f);
  position += length;
  return c;
}

char32_t previous_code_point(std::string_view text, size_t& position) {
  do {
    --position;
  } while (position > 0 && (text[position] & 0xc0) == 0x80);
  size_t at = position;
  return next_code_point(text, at);
}

void append_code_point(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += char(c);
    return;
  }
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(utf8proc_int32_t(c), bytes);
  out.append(reinterpret_cast<const char*>(bytes), size_t(n));
}

bool is_valid_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    if (bytes[i] < 0x80) {
      ++i;
      continue;
    }
    utf8proc_int32_t c;
    const auto n = utf8proc_iterate(bytes + i, utf8proc_ssize_t(text.size() - i), &c);
    if (n <= 0) return false;
    i += size_t(n);
  }
  return true;
}

size_t count_code_points(std::string_view text) {
  size_t n = 0;
  for (const char c : text) n += (c & 0xc0) != 0x80;
  return n;
}

size_t byte_offset(std::string_view text, size_t index) {
  size_t i = 0;
  for (; i < text.size(); ++i) {
    if ((text[i] & 0xc0) != 0x80 && index-- == 0) break;
  }
  return i;
}

bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool is_line_break(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_alpha(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

bool is_digit(char32_t c) {
  return is_decimal(c) || c == 0xb2 || c == 0xb3 || c == 0xb9 || c == 0x2070 ||
         (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) ||
         (c >= 0x2460 && c <= 0x2468) || (c >= 0x2474 && c <= 0x247c) ||
         (c >= 0x2488 && c <= 0x2490) || (c >= 0x2776 && c <= 0x277e);
}

bool is_numeric(char32_t c) {
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  const auto k = category(c);
  return !(k == UTF8PROC_CATEGORY_CN || (k >= UTF8PROC_CATEGORY_ZS && k <= UTF8PROC_CATEGORY_CO));
}

bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }

bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL || c == 0xaa || c == 0xba; }

bool is_cased(char32_t c) {
  return is_upper(c) || is_lower(c) || category(c) == UTF8PROC_CATEGORY_LT;
}

std::string to_upper(std::string_view text) {
  return transform(text,
                   [](std::string& out, size_t, size_t, char32_t c) { append_upper(out, c); });
}

std::string to_lower(std::string_view text) {
  return transform(text, [&](std::string& out, size_t at, size_t after, char32_t c) {
    append_lower(out, text, at, after, c);
  });
}

std::string to_title(std::string_view text) {
  bool in_word = false;
  return transform(text, [&](std::string& out, size_t at, size_t after, char32_t c) {
    if (in_word) {
      append_lower(out, text, at, after, c);
    } else {
      append_title(out, c);
    }
    in_word = is_cased(c);
  });
}

std::string to_capitalized(std::string_view text) {
  return transform(text, [&](std::string& out, size_t at, size_t after, char32_t c) {
    if (at == 0) {
      append_title(out, c);
    } else {
      append_lower(out, text, at, after, c);
    }
  });
}

std::string swap_case(std::string_view text) {
  return transform(text, [&](std::string& out, size_t at, size_t after, char32_t c) {
    if (is_upper(c)) {
      append_lower(out, text, at, after, c);
    } else if (is_lower(c)) {
      append_upper(out, c);
    } else {
      append_code_point(out, c);
    }
  });
}

std::string_view strip(std::string_view text, const std::string* characters, bool left,
                       bool right) {
  std::u32string set;
  for (size_t i = 0; characters && i < characters->size();) {
    set += next_code_point(*characters, i);
  }
  const auto cut = [&](char32_t c) { return characters ? set.find(c) != set.npos : is_space(c); };
  size_t begin = 0;
  while (left && begin < text.size()) {
    size_t after = begin;
    if (!cut(next_code_point(text, after))) break;
    begin = after;
  }
  size_t end = text.size();
  while (right && end > begin) {
    size_t before = end;
    if (!cut(previous_code_point(text, before))) break;
    end = before;
  }
  return text.substr(begin, end - begin);
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to,
                        int64_t limit) {
  std::string out;
  size_t done = 0;
  if (from.empty()) {  // between all code points and at both ends
    for (; limit != 0; --limit) {
      out += to;
      if (done == text.size()) break;
      const size_t start = done;
      next_code_point(text, done);
      out += text.substr(start, done - start);
    }
  }
  for (; limit != 0 && !from.empty(); --limit) {
    const size_t found = text.find(from, done);
    if (found == text.npos) break;
    out += text.substr(done, found - done);
    out += to;
    done = found + from.size();
  }
  out += text.substr(done);
  return out;
}

std::vector<std::string_view> split(std::string_view text, const std::string* separator,
                                    int64_t limit) {
  std::vector<std::string_view> out;
  if (separator) {
    for (; limit != 0; --limit) {
      const size_t found = text.find(*separator);
      if (found == text.npos) break;
      out.push_back(text.substr(0, found));
      text.remove_prefix(found + separator->size());
    }
    out.push_back(text);
    return out;
  }
  while (!(text = strip(text, nullptr, true, false)).empty()) {
    if (limit-- == 0) {
      out.push_back(text);
      break;
    }
    size_t end = 0;
    for (size_t next = 0; next < text.size() && !is_space(next_code_point(text, next));) end = next;
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

std::vector<std::string_view> split_from_right(std::string_view text, const std::string* separator,
                                               int64_t limit) {
  std::vector<std::string_view> out;
  if (separator) {
    for (; limit != 0; --limit) {
      const size_t found = text.rfind(*separator);
      if (found == text.npos) break;
      out.push_back(text.substr(found + separator->size()));
      text = text.substr(0, found);
    }
    out.push_back(text);
  } else {
    while (!(text = strip(text, nullptr, false, true)).empty()) {
      if (limit-- == 0) {
        out.push_back(text);
        break;
      }
      size_t begin = text.size();
      for (size_t next = begin; next > 0 && !is_space(previous_code_point(text, next));) {
        begin = next;
      }
      out.push_back(text.substr(begin));
      text = text.substr(0, begin);
    }
  }
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t end = i;
    const char32_t c = next_code_point(text, i);
    if (!is_line_break(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    out.push_back(text.substr(begin, (keep_ends ? i : end) - begin));
    begin = i;
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
  return out;
}

size_t count_occurrences(std::string_view text, std::string_view part) {
  if (part.empty()) return count_code_points(text) + 1;
  size_t n = 0;
  for (size_t i = text.find(part); i != text.npos; i = text.find(part, i + part.size())) ++n;
  return n;
}

}  // namespace sluice::jinja
