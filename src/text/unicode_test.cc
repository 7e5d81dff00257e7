#include "text/unicode.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

std::string mended(std::string_view bytes) {
  std::string out;
  append_valid_utf8(out, bytes);
  return out;
}

TEST(Unicode, ReplacesEveryMaximalInvalidPart) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(mended("a\xF0\x9F\x98"
                   "b"),
            "a" + bad + "b");                                    // three bytes of four
  EXPECT_EQ(mended("\xED\xA0\x80"), bad + bad + bad);            // a surrogate
  EXPECT_EQ(mended("\xC0\xAF"), bad + bad);                      // over-long
  EXPECT_EQ(mended("\xF4\x90\x80\x80"), bad + bad + bad + bad);  // beyond U+10FFFF
  EXPECT_EQ(mended("\xE6\xBC\xA2"), "\xE6\xBC\xA2");
}

TEST(Unicode, StreamsAnyCut) {
  const std::string bytes = "x\xF0\x9F\x98\x80\xE6\xBC\xFF\xC3\xA9\xF0\x9F";
  for (size_t a = 0; a <= bytes.size(); ++a) {
    for (size_t b = a; b <= bytes.size(); ++b) {
      Utf8Stream stream;
      std::string out;
      stream.push(bytes.substr(0, a), out);
      EXPECT_TRUE(is_valid_utf8(out));
      stream.push(bytes.substr(a, b - a), out);
      stream.push(bytes.substr(b), out);
      stream.finish(out);
      EXPECT_EQ(out, mended(bytes)) << a << " " << b;
    }
  }
}

TEST(Unicode, EncodesWhatItDecodes) {
  for (char32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 97) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    const CodePoint back = decode_utf8(text, 0);
    ASSERT_TRUE(back.valid);
    ASSERT_EQ(back.value, c);
    ASSERT_EQ(back.length, text.size());
  }
}

TEST(Unicode, Normalizes) {
  EXPECT_EQ(normalize("e\u0301", NormalForm::kNfc), "\u00E9");
  EXPECT_EQ(normalize("\u00E9", NormalForm::kNfd), "e\u0301");
  EXPECT_EQ(normalize("\uFB01\u2460", NormalForm::kNfkc), "fi1");
  EXPECT_EQ(normalize("a\u0301\u0323", NormalForm::kNfd), "a\u0323\u0301");  // marks in order
  EXPECT_EQ(normalize("\u1112\u1161\u11AB", NormalForm::kNfc), "\uD55C");    // Hangul
  EXPECT_EQ(normalize("\uFDFA", NormalForm::kNfkd).size(), 33u);             // 18 characters
}

TEST(Unicode, ByteNamesAreABijection) {
  for (int b = 0; b < 256; ++b) EXPECT_EQ(char_to_byte(byte_to_char(static_cast<uint8_t>(b))), b);
  EXPECT_EQ(bytes_of_name("\u0120the"), " the");
  EXPECT_EQ(bytes_of_name("\u2581the"), std::nullopt);
}

}  // namespace
}  // namespace sluice
