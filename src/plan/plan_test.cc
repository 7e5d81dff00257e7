#include "plan/plan.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice {
namespace {

TEST(Plan, SplitMinimisesTheMostExpensiveStage) {
  const Plan plan = split_by_cost({1, 1, 1, 1, 1, 1, 3}, 3);
  ASSERT_EQ(plan.stages.size(), 3u);
  EXPECT_EQ(plan.stages[0].blocks, (std::vector<std::pair<int, int>>{{0, 3}}));
  EXPECT_EQ(plan.stages[1].blocks, (std::vector<std::pair<int, int>>{{3, 6}}));
  EXPECT_TRUE(plan.stages[2].blocks.empty());
  EXPECT_TRUE(plan.stages[2].head);
}

TEST(Plan, EverySplitIsARoute) {
  for (int n = 1; n <= 8; ++n) {
    const Plan plan = split_by_cost({5, 1, 1, 9, 1, 1, 2, 4}, n);
    ASSERT_EQ(int(plan.stages.size()), n);
    const std::vector<Hop> hops = route(plan);
    EXPECT_EQ(int(hops.size()), n);
    EXPECT_TRUE(hops.front().embed);
    EXPECT_TRUE(hops.back().head);
  }
  EXPECT_THROW(split_by_cost({1, 1}, 3), Error);
  EXPECT_THROW(split_by_cost({1, 1}, 0), Error);
}

TEST(Plan, MixersAndFeedForwardsOnTwoStagesAlternate) {
  Plan plan{
      .n_blocks = 4,
      .stages = {{"mixers", {{0, 1}, {2, 3}}, false, {}}, {"ffn", {{1, 2}, {3, 4}}, true, {}}}};
  const std::vector<Hop> hops = route(plan);
  ASSERT_EQ(hops.size(), 4u);
  EXPECT_EQ(hops[2].stage, 0);
  EXPECT_EQ(hops[2].first_block, 2);
  EXPECT_TRUE(hops[3].head);
}

TEST(Plan, JsonRoundTrip) {
  Plan plan = split_by_cost({1, 1, 1, 1, 1}, 2);
  plan.stages[0].cores = {0};
  plan.stages[1].cores = {1};
  EXPECT_EQ(plan_to_json(plan_from_json(plan_to_json(plan), "p.json")), plan_to_json(plan));
}

struct BadPlan {
  const char* json;
  const char* message;
};

class BadPlans : public testing::TestWithParam<BadPlan> {};

TEST_P(BadPlans, NameTheField) {
  try {
    plan_from_json(parse_json(GetParam().json, "p.json"), "p.json");
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(GetParam().message), std::string::npos) << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BadPlans,
    testing::Values(
        BadPlan{R"({"stages": []})", "p.json: n_blocks: missing"},
        BadPlan{R"({"n_blocks": 2, "stages": []})", "stages: expected a list"},
        BadPlan{R"({"n_blocks": 2, "stages": [{"blocks": [[0, 3]]}]})",
                "blocks: expected ascending"},
        BadPlan{R"({"n_blocks": 2, "stages": [{"blocks": [["0", 1]]}]})", "blocks: expected"},
        BadPlan{R"({"n_blocks": 2, "stages": [{"blocks": [[0, 1]], "head": true}]})",
                "block 1 is on no"},
        BadPlan{R"({"n_blocks": 1, "stages": [{"blocks": [[0, 1]]}]})", "no stage has"},
        BadPlan{R"({"n_blocks": 1, "stages": [{"blocks": [[0, 1]], "head": true},
                                              {"blocks": [[0, 1]]}]})",
                "block 0 is on two"},
        BadPlan{R"({"n_blocks": 2, "stages": [{"blocks": [[0, 1]], "head": true, "cores": [0, 1]},
                                              {"blocks": [[1, 2]], "cores": [1]}]})",
                "share all"},
        BadPlan{
            R"({"n_blocks": 1, "stages": [{"blocks": [[0, 1]], "head": true, "cores": [1, 1]}]})",
            "listed twice"}));

}  // namespace
}  // namespace sluice
