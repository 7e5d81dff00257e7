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

}  // namespace
}  // namespace sluice
