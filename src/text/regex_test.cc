#include "text/regex.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice {
namespace {

/// All matches, joined by '|'.
std::string matches(std::string_view pattern, std::string_view text) {
  const Regex regex(pattern, "test");
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto match = regex.find(text, at);
    if (!match) break;
    if (!out.empty()) out += '|';
    out += text.substr(match->first, match->second - match->first);
    at = std::max(match->second, at + 1);
  }
  return out;
}

TEST(Regex, IntersectsClasses) {
  EXPECT_EQ(matches("[a-z&&[^aeiou]]+", "strange dew"), "str|ng|d|w");
  EXPECT_EQ(matches("[^a-z&&[^aeiou]]+", "strange dew"), "a|e |e");
  EXPECT_EQ(matches(R"([\p{L}&&[^\p{Han}]]+)", "ab漢c"), "ab|c");
}

TEST(Regex, NestsClasses) {
  EXPECT_EQ(matches("[a[c-e]]+", "abcde"), "a|cde");
  EXPECT_EQ(matches("[x[^a-c]]+", "axbyc"), "x|y");
  EXPECT_EQ(matches(R"([]a]+)", "]ab"), "]a");
  EXPECT_EQ(matches(R"([^\S\n]+)", "a \t\nb"), " \t");
}

TEST(Regex, ClassesMeanUnicode) {
  EXPECT_EQ(matches(R"(\s+)", "a\u0085\u2003b\u180Ec"), "\u0085\u2003");
  EXPECT_EQ(matches(R"(\w+)", "n\u0303\u203F-x"), "n\u0303\u203F|x");
  EXPECT_EQ(matches(R"(\h+)", "xAf9g"), "Af9");
  EXPECT_EQ(matches(R"(\u00e9+)", "e\u00e9"), "\u00e9");
}

TEST(Regex, BrokenPatternsAreErrors) {
  for (const char* pattern : {"[a", "(a", "[a&&]", "\\", "\\u12", "\\p{L", "[[:alpha", "a{3,1}"}) {
    EXPECT_THROW(Regex(pattern, "test"), Error) << pattern;
  }
  EXPECT_THROW(Regex(std::string(1000, '['), "test"), Error);
}

TEST(Regex, QuotesLiterals) {
  EXPECT_EQ(matches(quote_pattern("a.b[\xC3\xA9"), "axb a.b[\xC3\xA9"), "a.b[\xC3\xA9");
}

}  // namespace
}  // namespace sluice
