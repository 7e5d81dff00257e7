#include "serve/stop_filter.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(StopFilter, HoldsBackWhatMayBecomeAStopText) {
  StopFilter filter({"END", "</s>"});
  EXPECT_EQ(filter.push("one E"), "one ");
  EXPECT_EQ(filter.push("N"), "");
  EXPECT_EQ(filter.push("E two"), "ENE two");
  EXPECT_EQ(filter.push("<"), "");
  EXPECT_EQ(filter.push("/s"), "");
  EXPECT_EQ(filter.push("> never"), "");
  EXPECT_EQ(filter.stop_text(), "</s>");
  EXPECT_EQ(filter.push("more"), "");
  EXPECT_EQ(filter.finish(), "");
}

TEST(StopFilter, TheFirstStopInTheTextWins) {
  StopFilter filter({"bc", "b"});
  EXPECT_EQ(filter.push("abcd"), "a");
  EXPECT_EQ(filter.stop_text(), "bc");
}

TEST(StopFilter, GivesBackWhatWasHeldAtTheEnd) {
  StopFilter filter({"aab", ""});
  EXPECT_EQ(filter.push("xaa"), "x");
  EXPECT_EQ(filter.push("a"), "a");  // "aa" may still begin the stop text
  EXPECT_EQ(filter.finish(), "aa");
  EXPECT_FALSE(filter.stopped());
}

}  // namespace
}  // namespace sluice
