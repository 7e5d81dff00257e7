#include "serve/url.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Url, DecodesSegments) {
  EXPECT_EQ(decode_segment("org%2Fmy%20model"), "org/my model");
  EXPECT_EQ(decode_segment("%c3%A9"), "\xc3\xa9");
  EXPECT_EQ(decode_segment("a%"), "a%");
  EXPECT_EQ(decode_segment("%4"), "%4");
  EXPECT_EQ(decode_segment("%4g%-1"), "%4g%-1");
  EXPECT_EQ(decode_segment(""), "");
}

TEST(Url, FindsValuesInQueries) {
  EXPECT_EQ(query_value("limit=5&after=a%20b", "after"), "a b");
  EXPECT_EQ(query_value("limit=5&after=a%20b", "limit"), "5");
  EXPECT_EQ(query_value("model=a=b", "model"), "a=b");
  EXPECT_EQ(query_value("xmodel=1&model&model=", "model"), "");
  EXPECT_EQ(query_value("a=1&a=2", "a"), "1");
  EXPECT_EQ(query_value("", "a"), std::nullopt);
  EXPECT_EQ(query_value("&&a", "a"), std::nullopt);
}

}  // namespace
}  // namespace sluice
