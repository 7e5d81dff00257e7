#include "plan/draft.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"

namespace sluice {
namespace {

TEST(Draft, SharesReachedAddUpToWhatIsAccepted) {
  for (const std::string& name : draft_names()) {
    const Draft draft = draft_named(name);
    ASSERT_EQ(int(draft.reached.size()), draft.length) << name;
    const double sum = std::accumulate(draft.reached.begin(), draft.reached.end(), 1.0);
    EXPECT_NEAR(sum, draft.accepted, 1e-9) << name;
    for (size_t i = 1; i < draft.reached.size(); ++i) {
      EXPECT_LE(draft.reached[i], draft.reached[i - 1]) << name;
    }
  }
  EXPECT_NEAR(draft_named("mtp-3").reached[1], 2.27 - 1.79, 1e-9);
  EXPECT_THROW(draft_named("mtp-9"), Error);
}

TEST(Draft, KeepsAsManyGuessesAsPublishedOnAverage) {
  for (const char* name : {"mtp-3", "dspark-7", "eagle3-8"}) {
    const Draft draft = draft_named(name);
    double sum = 0;
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
      const int n = accepted_guesses(draft, 1, uint64_t(i / 100), i % 100);
      EXPECT_EQ(n, accepted_guesses(draft, 1, uint64_t(i / 100), i % 100));
      EXPECT_LE(n, draft.length);
      sum += 1 + n;
    }
    EXPECT_NEAR(sum / kDraws, draft.accepted, 0.02 * draft.accepted) << name;
  }
  EXPECT_EQ(accepted_guesses(draft_named("none"), 1, 1, 1), 0);
}

// arXiv 2605.30852, by the wall clock.
TEST(Draft, FillsThePipeAsMeasured) {
  EXPECT_EQ(pipe_gain(1), 1);
  EXPECT_NEAR(pipe_gain(4), 2.27, 0.03 * 2.27);
  EXPECT_GT(pipe_gain(8), 2.53);
  EXPECT_LT(pipe_gain(8), 2.67);
  EXPECT_GT(pipe_gain(16), 1.43);
  EXPECT_LT(pipe_gain(16), 1.49);
}

}  // namespace
}  // namespace sluice
