#include "plan/host.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace sluice {
namespace {

HostProfile profile() {
  HostProfile host;
  host.isa = "test";
  host.read_gb_s = {{1e6, 100}, {1e8, 20}};
  host.matmul = {{"Q4_1", 1e6, 1, 2, 10}, {"Q4_1", 1e6, 4, 2, 20}, {"Q4_1", 1e6, 16, 4, 80},
                 {"Q4_1", 1e8, 1, 2, 30}, {"Q4_1", 1e8, 4, 2, 30}, {"Q4_1", 1e8, 16, 4, 80},
                 {"F16", 1e6, 1, 1, 1}};
  host.norm = {0.5, 0.001};
  host.norm_shared = {2, 0.0005};
  host.attend_decode = {3, 0.0001};
  host.attend_row_us = 0.5;
  host.attend_prompt = {5, 0.00005};
  host.state = {1, 0.001};
  host.sample = {2, 0.0001};
  host.scheduler = {4, 0.5};
  host.join_us = 1;
  host.hop_us = 0.3;
  return host;
}

HostPart attention_part() {
  HostPart part;
  part.ops = {{.type = "Q4_1", .bytes = 2e6}, {.type = "Q4_1", .bytes = 1e6}};
  part.row_values = 1000;
  part.attend_values = 512;
  return part;
}

HostModel model(int n_blocks) {
  HostModel m;
  for (int i = 0; i < n_blocks; ++i) m.blocks.push_back(attention_part());
  m.head.ops = {{.type = "F16", .bytes = 5e6}};
  m.head.row_values = 100;
  m.vocab = 10000;
  m.bytes = 1e6;
  return m;
}

Plan plan_of(int n_blocks) {
  return {.n_blocks = n_blocks,
          .stages = {{"a", {{0, 1}}, false, {}}, {"b", {{1, n_blocks}}, true, {}}}};
}

BatchLoad decode_of(int n, int position) {
  BatchLoad load;
  load.n_rows = load.n_sampled = n;
  for (int i = 0; i < n; ++i) load.segments.push_back({1, position, true});
  return load;
}

BatchPrice price_of(const HostCost& cost, const BatchLoad& load, int n_hops) {
  BatchPrice price;
  price.hop_us.resize(size_t(n_hops));
  price.link_us.resize(size_t(n_hops));
  cost.price(load, price);
  return price;
}

TEST(Host, AProfileOfSeveralRoundsHasTheMedianOfEachNumber) {
  std::vector<HostProfile> rounds(3, profile());
  rounds[0].join_us = 7;
  rounds[1].norm_shared.per_unit_us = 9;
  rounds[2].matmul[1].us_per_mb = 0.1;
  EXPECT_EQ(host_to_json(median_of(rounds)), host_to_json(profile()));
  rounds[1].join_us = 8;
  EXPECT_EQ(median_of(rounds).join_us, 7);
}

TEST(Host, ManyRowsAreSharedByThreads) {
  HostModel m = model(1);
  m.blocks[0].ops.clear();
  m.blocks[0].attend_values = 0;
  const HostProfile host = profile();
  const HostCost cost(host, m, plan_of(1));
  EXPECT_NEAR(price_of(cost, decode_of(8, 1), 2).hop_us[0], 0.5 + 8 * 1000 * 0.001, 1e-9);
  EXPECT_NEAR(price_of(cost, decode_of(200, 1), 2).hop_us[0], 2 + 200 * 1000 * 0.0005, 1e-9);
}

TEST(Host, MatricesAreInterpolatedBetweenWhatWasMeasured) {
  const HostProfile host = profile();
  EXPECT_EQ(host.matmul_at("Q4_1", 1e6, 1).us_per_mb, 10);
  EXPECT_NEAR(host.matmul_at("Q4_1", 1e6, 2).us_per_mb, 15, 1e-9);  // on a scale of logarithms
  EXPECT_NEAR(host.matmul_at("Q4_1", 1e7, 1).us_per_mb, 20, 1e-9);
  EXPECT_EQ(host.matmul_at("Q4_1", 1e3, 1).us_per_mb, 10);
  EXPECT_EQ(host.matmul_at("Q4_1", 1e12, 1).us_per_mb, 30);
  EXPECT_NEAR(host.matmul_at("Q4_1", 1e6, 64).us_per_mb, 320, 1e-9);  // four times the rows
  EXPECT_THROW(host.matmul_at("Q6_K", 1e6, 1), Error);
}

TEST(Host, ABatchCostsTheSumOfItsOperations) {
  const HostProfile host = profile();
  const HostModel m = model(3);
  const HostCost cost(host, m, plan_of(3));
  const double attend = 3 + 0.5 + 0.0001 * 512 * 100;
  const double block = (2 + 20) + (2 + 10) + (0.5 + 1.0) + attend;
  const double head = (1 + 5) + (0.5 + 0.1) + (2 + 1);
  const BatchPrice one = price_of(cost, decode_of(1, 99), 2);
  EXPECT_NEAR(one.hop_us[0], block, 1e-9);
  EXPECT_NEAR(one.hop_us[1], 2 * block + head, 1e-9);
  EXPECT_NEAR(one.scheduler_us, 4.5, 1e-9);
  EXPECT_EQ(one.link_us[0], 0.3);
  // Four users: the matrices are read once, each attends on its own.
  const BatchPrice four = price_of(cost, decode_of(4, 99), 2);
  const double four_block = (2 + 40) + (2 + 20) + (0.5 + 4) + 3 + 4 * (attend - 3);
  EXPECT_NEAR(four.hop_us[0], four_block, 1e-9);
}

TEST(Host, PromptsWindowsAndExpertsCostWhatTheyTouch) {
  const HostProfile host = profile();
  HostModel m = model(3);
  BatchLoad prompt;
  prompt.n_rows = 16;
  prompt.segments = {{16, 84, false}};  // sees 85 to 100
  const HostCost whole(host, m, plan_of(3));
  const double seen = 16 * 92.5, rest = (4 + 160) + (4 + 80) + (0.5 + 16) + 5;
  EXPECT_NEAR(price_of(whole, prompt, 2).hop_us[0], rest + 0.00005 * 512 * seen, 1e-9);
  m.blocks[0].window = 10;
  const HostCost windowed(host, m, plan_of(3));
  EXPECT_NEAR(price_of(windowed, prompt, 2).hop_us[0], rest + 0.00005 * 512 * 160, 1e-9);
  m.blocks[0] = {};
  m.blocks[0].ops = {{.type = "Q4_1", .bytes = 1e6, .n_experts = 8, .n_active = 2}};
  const HostCost experts(host, m, plan_of(3));
  EXPECT_NEAR(price_of(experts, decode_of(1, 5), 2).hop_us[0], 0.5 + 2 + 2 * 10, 1e-9);
  EXPECT_LT(price_of(experts, decode_of(16, 5), 2).hop_us[0], 0.5 + 4 + 8 * 80);
}

TEST(Host, SurvivesJson) {
  const HostProfile host = profile();
  const std::string text = host_to_json(host).dump();
  const HostProfile back = host_from_json(Config(parse_json(text, "h.json"), "h.json"));
  EXPECT_EQ(host_to_json(back).dump(), text);
}

TEST(Host, WrongProfilesNameTheField) {
  const auto message = [](auto change) -> std::string {
    Json json = parse_json(host_to_json(profile()).dump(), "h");
    change(json);
    try {
      host_from_json(Config(json, "h.json"));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message([](Json& j) { j["matmul"][0]["us_per_mb"] = -1; }).find("us_per_mb"),
            std::string::npos);
  EXPECT_NE(message([](Json& j) { j["matmul"] = Json::array(); }).find("matmul"),
            std::string::npos);
  EXPECT_NE(message([](Json& j) { j["hop_us"] = 1e300; }).find("hop_us"), std::string::npos);
  EXPECT_NE(message([](Json& j) { j["norm"].erase("fixed_us"); }).find("fixed_us"),
            std::string::npos);
  EXPECT_NE(message([](Json& j) { j.erase("threads"); }).find("threads"), std::string::npos);
  EXPECT_NE(message([](Json& j) { j["sample"]["per_unit_us"] = std::nan(""); }).find("per_unit_us"),
            std::string::npos);
}

TEST(Host, RefusesAPlanOfAnotherModel) {
  const HostProfile host = profile();
  const HostModel m = model(3);
  EXPECT_THROW(HostCost(host, m, plan_of(4)), Error);
}

}  // namespace
}  // namespace sluice
