#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

namespace sluice {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

struct ByteMap {
  std::array<char32_t, 256> to_char;
  std::array<int16_t, 324> to_byte;
};

const ByteMap& byte_map() {
  static const ByteMap map = [] {
    ByteMap m;
    m.to_byte.fill(-1);
    char32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool printable =
          (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
      const char32_t c = printable ? static_cast<char32_t>(b) : next++;
      m.to_char[static_cast<size_t>(b)] = c;
      m.to_byte[c] = static_cast<int16_t>(b);
    }
    return m;
  }();
  return map;
}

/// The range of the second byte that a lead byte allows, and the length it announces (0: no lead).
struct Lead {
  uint32_t length;
  uint8_t low, high;
};

Lead lead_of(uint8_t b) {
  if (b >= 0xC2 && b <= 0xDF) return {2, 0x80, 0xBF};
  if (b == 0xE0) return {3, 0xA0, 0xBF};
  if (b == 0xED) return {3, 0x80, 0x9F};
  if (b >= 0xE1 && b <= 0xEF) return {3, 0x80, 0xBF};
  if (b == 0xF0) return {4, 0x90, 0xBF};
  if (b >= 0xF1 && b <= 0xF3) return {4, 0x80, 0xBF};
  if (b == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

/// Canonical order: combining marks between starters sorted by class, stable.
void sort_marks(std::vector<utf8proc_int32_t>& chars) {
  const auto combining = [](utf8proc_int32_t c) {
    return utf8proc_get_property(c)->combining_class;
  };
  for (auto it = chars.begin(); it != chars.end();) {
    if (combining(*it) == 0) {
      ++it;
      continue;
    }
    const auto end = std::find_if(it, chars.end(), [&](auto c) { return combining(c) == 0; });
    std::stable_sort(it, end, [&](auto a, auto b) { return combining(a) < combining(b); });
    it = end;
  }
}

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t position) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[position + i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1, true, false};
  const Lead lead = lead_of(first);
  if (lead.length == 0) return {kReplacementCharacter, 1, false, false};
  char32_t value = first & (0xFFu >> (lead.length + 1));
  for (uint32_t i = 1; i < lead.length; ++i) {
    if (position + i >= text.size()) return {kReplacementCharacter, i, false, true};
    const uint8_t b = byte(i);
    const bool fits = i == 1 ? b >= lead.low && b <= lead.high : (b & 0xC0) == 0x80;
    if (!fits) return {kReplacementCharacter, i, false, false};
    value = (value << 6) | (b & 0x3Fu);
  }
  return {value, lead.length, true, false};
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t b) { out.push_back(static_cast<char>(b)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<uint8_t>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const CodePoint c = decode_utf8(text, at);
    if (!c.valid) return false;
    at += c.length;
  }
  return true;
}

void append_valid_utf8(std::string& out, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    if (c.valid) {
      out.append(text.substr(at, c.length));
    } else {
      append_utf8(out, kReplacementCharacter);
    }
    at += c.length;
  }
}

void Utf8Stream::push(std::string_view bytes, std::string& out) {
  std::string joined;
  if (!held_.empty()) {
    joined = held_.append(bytes);
    held_.clear();
    bytes = joined;
  }
  // Only a truncated character at the very end, at most three bytes, can be incomplete.
  size_t end = bytes.size();
  for (size_t back = 1; back <= std::min<size_t>(3, bytes.size()); ++back) {
    const size_t at = bytes.size() - back;
    if ((static_cast<uint8_t>(bytes[at]) & 0xC0) == 0x80) continue;
    const CodePoint c = decode_utf8(bytes, at);
    if (c.truncated && at + c.length == bytes.size()) end = at;
    break;
  }
  append_valid_utf8(out, bytes.substr(0, end));
  held_.assign(bytes.substr(end));
}

void Utf8Stream::finish(std::string& out) {
  append_valid_utf8(out, held_);
  held_.clear();
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_numeric(char32_t c) {
  const auto g = category(c);
  return g == UTF8PROC_CATEGORY_ND || g == UTF8PROC_CATEGORY_NL || g == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) ||
           (c >= 0x7B && c <= 0x7E);
  }
  const auto g = category(c);
  return g >= UTF8PROC_CATEGORY_PC && g <= UTF8PROC_CATEGORY_PO;
}

bool is_word(char32_t c) {
  const auto g = category(c);
  const bool circled_letter = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                              (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  return (g >= UTF8PROC_CATEGORY_LU && g <= UTF8PROC_CATEGORY_NL) || g == UTF8PROC_CATEGORY_PC ||
         circled_letter || c == 0x200C || c == 0x200D;
}

bool is_mark(char32_t c) {
  const auto g = category(c);
  return g >= UTF8PROC_CATEGORY_MN && g <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t c) { return category(c) == UTF8PROC_CATEGORY_MN; }

bool is_control_or_format(char32_t c) {
  const auto g = category(c);
  return g == UTF8PROC_CATEGORY_CC || g == UTF8PROC_CATEGORY_CF || g == UTF8PROC_CATEGORY_CO;
}

bool is_cjk_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string normalize(std::string_view text, NormalForm form) {
  // Below U+0300 nothing composes; without compatibility mappings nothing else changes either.
  const uint8_t inert_below = form == NormalForm::kNfc ? 0xCC : 0x80;
  if (std::all_of(text.begin(), text.end(),
                  [&](char c) { return static_cast<uint8_t>(c) < inert_below; })) {
    return std::string(text);
  }
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const bool compose = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
      (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> chars;
  chars.reserve(text.size());
  for_each_char(text, [&](char32_t c, std::string_view) {
    std::array<utf8proc_int32_t, 32> parts;  // the longest mapping, U+FDFA, has 18
    int boundary = 0;
    const auto n =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                static_cast<utf8proc_ssize_t>(parts.size()), options, &boundary);
    if (n < 1 || n > static_cast<utf8proc_ssize_t>(parts.size())) {
      chars.push_back(static_cast<utf8proc_int32_t>(c));
    } else {
      chars.insert(chars.end(), parts.begin(), parts.begin() + n);
    }
  });
  // utf8proc_decompose would sort by insertion, quadratic in the length of a run of marks.
  sort_marks(chars);
  if (compose) {
    const auto n = utf8proc_normalize_utf32(chars.data(),
                                            static_cast<utf8proc_ssize_t>(chars.size()), options);
    chars.resize(static_cast<size_t>(n));
  }
  std::string out;
  out.reserve(text.size());
  for (const auto c : chars) append_utf8(out, static_cast<char32_t>(c));
  return out;
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_char(text, [&](char32_t c, std::string_view) {
    if (c == 0x130) {  // the one character whose full mapping is longer: i and a dot above
      out += "i\xCC\x87";
    } else {
      append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
    }
  });
  return out;
}

size_t grapheme_length(std::string_view text) {
  CodePoint previous = decode_utf8(text, 0);
  size_t at = previous.length;
  utf8proc_int32_t state = 0;
  while (at < text.size()) {
    const CodePoint next = decode_utf8(text, at);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous.value),
                                         static_cast<utf8proc_int32_t>(next.value), &state)) {
      break;
    }
    at += next.length;
    previous = next;
  }
  return at;
}

char32_t byte_to_char(uint8_t byte) { return byte_map().to_char[byte]; }

int char_to_byte(char32_t c) { return c < byte_map().to_byte.size() ? byte_map().to_byte[c] : -1; }

std::optional<std::string> bytes_of_name(std::string_view name) {
  std::string out;
  for (size_t at = 0; at < name.size();) {
    const CodePoint c = decode_utf8(name, at);
    const int byte = c.valid ? char_to_byte(c.value) : -1;
    if (byte < 0) return std::nullopt;
    out.push_back(static_cast<char>(byte));
    at += c.length;
  }
  return out;
}

}  // namespace sluice
