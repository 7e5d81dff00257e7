#include "text/regex_grammar.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "text/unicode.h"

namespace sluice {
namespace {

constexpr int kMaxGroups = 100;  // nested
constexpr int kMaxRepetitions = 10'000;
constexpr int64_t kNoLimit = -1;

const CharSet kDigits = {{'0', '9'}};
const CharSet kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CharSet kSpace = {{'\t', '\r'}, {' ', ' '}};

CharSet fold_case(CharSet set) {
  const size_t n = set.size();
  for (size_t i = 0; i < n; ++i) {
    const auto [low, high] = set[i];
    for (const char32_t first : {U'a', U'A'}) {
      const char32_t from = std::max(low, first);
      const char32_t to = std::min<char32_t>(high, first + 25);
      if (from <= to) set.emplace_back(from ^ 32, to ^ 32);
    }
  }
  return normalized(std::move(set));
}

class RegexParser {
 public:
  RegexParser(GrammarBuilder& builder, std::string_view pattern, const RegexOptions& options)
      : builder_(builder),
        pattern_(pattern),
        options_(options),
        what_(options.what.empty() ? builder.what() : options.what) {
    if (!is_valid_utf8(pattern)) fail("valid UTF-8", "something else");
  }

  Expr parse() {
    const Expr result = alternatives(0);
    if (at_ < pattern_.size()) fail("the end", ")");
    return result;
  }

 private:
  [[noreturn]] void fail(std::string_view expected, std::string_view got) const {
    throw Error(ErrorCode::kInvalidInput, "{}: byte {}: expected {}, got {}", what_, at_, expected,
                got);
  }
  [[noreturn]] void unsupported(std::string_view what) const {
    throw Error(ErrorCode::kUnsupported, "{}: byte {}: expected a regular language, got {}", what_,
                at_, what);
  }
  bool done() const { return at_ >= pattern_.size(); }
  bool next_is(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool take(std::string_view text) {
    if (!next_is(text)) return false;
    at_ += text.size();
    return true;
  }

  Expr characters(CharSet set) {
    if (options_.ignore_case) set = fold_case(std::move(set));
    return options_.json_string ? json_characters(builder_, set)
                                : builder_.characters(std::move(set));
  }
  Expr anything() { return builder_.repeat(characters(complement({})), 0, -1); }

  Expr alternatives(int depth) {
    if (depth > kMaxGroups) fail("fewer nested groups", "more than 100");
    std::vector<Expr> choices;
    do {
      choices.push_back(sequence(depth));
    } while (take("|"));
    return builder_.choice(std::move(choices));
  }

  Expr sequence(int depth) {
    std::vector<Expr> parts;
    bool starts = false, ends = false;
    while (depth == 0 && take("^")) starts = true;
    if (options_.search && depth == 0 && !starts) parts.push_back(anything());
    while (!done() && !next_is("|") && !next_is(")")) {
      if (next_is("^")) unsupported("^ inside the pattern");
      if (take("$")) {
        if (depth > 0 || !(done() || next_is("|") || next_is("$"))) {
          unsupported("$ inside the pattern");
        }
        ends = true;
        continue;
      }
      parts.push_back(quantified(depth));
    }
    if (options_.search && depth == 0 && !ends) parts.push_back(anything());
    return builder_.sequence(std::move(parts));
  }

  Expr quantified(int depth) {
    const Expr body = atom(depth);
    int64_t min = 1, max = 1;
    if (!quantifier(min, max)) return body;
    if (take("+")) unsupported("a possessive quantifier");
    take("?");
    if (next_is("*") || next_is("+") || next_is("?")) fail("something to repeat", "a quantifier");
    if (max != kNoLimit && max < min) fail("a larger number after the comma", "a smaller one");
    return builder_.repeat(body, static_cast<int>(min), static_cast<int>(max));
  }

  bool quantifier(int64_t& min, int64_t& max) {
    if (take("*")) {
      min = 0;
      max = kNoLimit;
    } else if (take("+")) {
      max = kNoLimit;
    } else if (take("?")) {
      min = 0;
    } else {
      return counted(min, max);
    }
    return true;
  }

  /// {n} {n,} {,m} {n,m}; anything else in braces is text.
  bool counted(int64_t& min, int64_t& max) {
    if (!next_is("{")) return false;
    size_t i = at_ + 1;
    const auto number = [&](int64_t fallback) {
      if (i >= pattern_.size() || !std::isdigit(static_cast<uint8_t>(pattern_[i]))) return fallback;
      int64_t value = 0;
      for (; i < pattern_.size() && std::isdigit(static_cast<uint8_t>(pattern_[i])); ++i) {
        value = std::min<int64_t>(value * 10 + (pattern_[i] - '0'), 1'000'000'000);
      }
      return value;
    };
    const size_t digits = i;
    const int64_t low = number(0);
    const bool has_low = i > digits;
    int64_t high = low;
    if (i < pattern_.size() && pattern_[i] == ',') {
      ++i;
      high = number(kNoLimit);
      if (!has_low && high == kNoLimit) return false;
    } else if (!has_low) {
      return false;
    }
    if (i >= pattern_.size() || pattern_[i] != '}') return false;
    if (std::max(low, high) > kMaxRepetitions) fail("at most 10000 repetitions", "more");
    at_ = i + 1;
    min = low;
    max = high;
    return true;
  }

  Expr atom(int depth) {
    if (take("(")) return group(depth);
    if (take("[")) return characters(char_class());
    if (take("."))
      return characters(options_.dot_all ? complement({}) : complement({{'\n', '\n'}}));
    if (next_is("*") || next_is("+") || next_is("?")) fail("something to repeat", "a quantifier");
    if (take("\\")) return characters(escape(false));
    return characters(one(character()));
  }

  Expr group(int depth) {
    if (take("?")) {
      if (next_is("=") || next_is("!")) unsupported("look-ahead");
      if (next_is("<=") || next_is("<!")) unsupported("look-behind");
      if (take("P<") || take("<")) {
        while (!done() && !next_is(">")) ++at_;
        if (!take(">")) fail("> after a group's name", "the end");
      } else if (next_is("P=")) {
        unsupported("a back reference");
      } else if (!take(":")) {
        unsupported("inline flags or another extension of groups");
      }
    }
    const Expr body = alternatives(depth + 1);
    if (!take(")")) fail(")", "the end");
    return body;
  }

  char32_t character() {
    const CodePoint c = decode_utf8(pattern_, at_);
    at_ += c.length;
    return c.value;
  }
  static CharSet one(char32_t c) { return {{c, c}}; }

  char32_t hexadecimal(size_t min_digits, size_t max_digits) {
    char32_t value = 0;
    size_t n = 0;
    for (; n < max_digits && !done() && std::isxdigit(static_cast<uint8_t>(pattern_[at_])); ++n) {
      const char c = static_cast<char>(pattern_[at_++] | 0x20);
      value = value * 16 + static_cast<char32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (n < min_digits) fail("hexadecimal digits", "something else");
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
      fail("a Unicode character", "a surrogate or a larger number");
    }
    return value;
  }

  CharSet escape(bool in_class) {
    if (done()) fail("a character after \\", "the end");
    const char32_t c = character();
    switch (c) {
      case 'd':
        return kDigits;
      case 'D':
        return complement(kDigits);
      case 'w':
        return kWord;
      case 'W':
        return complement(kWord);
      case 's':
        return kSpace;
      case 'S':
        return complement(kSpace);
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case '0':
        return one(0);
      case 'x':
        return one(hexadecimal(2, 2));
      case 'u':
        if (take("{")) {
          const char32_t value = hexadecimal(1, 6);
          if (!take("}")) fail("}", "something else");
          return one(value);
        }
        return one(hexadecimal(4, 4));
      case 'b':
        if (in_class) return one('\b');
        unsupported("\\b");
      default:
        break;
    }
    if (c == 'B' || c == 'p' || c == 'P' || c == 'A' || c == 'Z' || c == 'z') {
      unsupported(std::string("\\") + static_cast<char>(c));
    }
    if (c == 'k' || (c >= '1' && c <= '9')) unsupported("a back reference");
    if (c < 0x80 && std::isalnum(static_cast<int>(c))) fail("a known escape", "another letter");
    return one(c);
  }

  /// What follows "[".
  CharSet char_class() {
    const bool negated = take("^");
    CharSet set;
    if (next_is("]")) fail("a character class with something in it", "none");
    while (!take("]")) {
      if (done()) fail("]", "the end");
      const CharSet low = take("\\") ? escape(true) : one(character());
      if (next_is("-") && !next_is("-]") && at_ + 1 < pattern_.size()) {
        ++at_;
        const CharSet high = take("\\") ? escape(true) : one(character());
        if (low.size() != 1 || high.size() != 1 || low[0].first != low[0].second ||
            high[0].first != high[0].second || high[0].first < low[0].first) {
          fail("a range of characters in ascending order", "another");
        }
        set.emplace_back(low[0].first, high[0].first);
      } else {
        set.insert(set.end(), low.begin(), low.end());
      }
    }
    if (options_.ignore_case) set = fold_case(std::move(set));
    return negated ? complement(set) : normalized(std::move(set));
  }

  GrammarBuilder& builder_;
  std::string_view pattern_;
  const RegexOptions& options_;
  std::string what_;
  size_t at_ = 0;
};

}  // namespace

Expr regex_grammar(GrammarBuilder& builder, std::string_view pattern, const RegexOptions& options) {
  return RegexParser(builder, pattern, options).parse();
}

Expr json_characters(GrammarBuilder& builder, const CharSet& set) {
  CharSet plain;
  std::vector<std::string> escaped;
  static constexpr char kHex[] = "0123456789abcdef";
  const auto escape = [&](char32_t c) {
    if (c == '"') return escaped.push_back("\\\"");
    if (c == '\\') return escaped.push_back("\\\\");
    if (c == '\b') escaped.push_back("\\b");
    if (c == '\f') escaped.push_back("\\f");
    if (c == '\n') escaped.push_back("\\n");
    if (c == '\r') escaped.push_back("\\r");
    if (c == '\t') escaped.push_back("\\t");
    escaped.push_back(std::string("\\u00") + kHex[c >> 4] + kHex[c & 15]);
  };
  const auto keep = [&](char32_t low, char32_t high) {
    if (low <= high) plain.emplace_back(low, high);
  };
  for (const auto& [low, high] : normalized(set)) {
    for (char32_t c = low; c <= high && c < 0x20; ++c) escape(c);
    for (const char32_t c : {U'"', U'\\'}) {
      if (low <= c && c <= high) escape(c);
    }
    keep(std::max<char32_t>(low, ' '), std::min<char32_t>(high, '!'));
    keep(std::max<char32_t>(low, '#'), std::min<char32_t>(high, '['));
    keep(std::max<char32_t>(low, ']'), high);
  }
  std::vector<Expr> choices;
  if (!plain.empty() || escaped.empty()) choices.push_back(builder.characters(std::move(plain)));
  if (!escaped.empty()) choices.push_back(builder.literals(std::move(escaped)));
  return builder.choice(std::move(choices));
}

}  // namespace sluice
