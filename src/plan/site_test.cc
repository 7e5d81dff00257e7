#include "plan/site.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "plan/catalog.h"
#include "plan/describe.h"
#include "plan/hypothetical.h"

namespace sluice {
namespace {

TEST(Site, ReadsUnitsStrictly) {
  EXPECT_EQ(watts_from_text("750MW", "--site"), 750e6);
  EXPECT_EQ(watts_from_text("1GW", "--site"), 1e9);
  EXPECT_EQ(watts_from_text("2.5kW", "--site"), 2500);
  for (const char* wrong : {"", "750", "MW", "750mw", "750 MW", "750MWh", "-1MW", "0kW", "nanMW",
                            "infGW", "2000GW", "1e400MW"}) {
    try {
      watts_from_text(wrong, "--site");
      FAIL() << wrong;
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("--site: expected a number and kW"))
          << wrong;
    }
  }
}

TEST(Site, HoldsWhatPowerAndCoolingAllow) {
  const ModelShape model = *hypothetical_named("3T/150B/80/mla");
  Demand demand{.users = 80};
  demand.weights = weight_format("4bit");
  const Candidate plan = search(model, {*find_hardware("CS-3")}, demand)[0];
  const SiteFill site = fill_site(plan, demand.users, 750e6);
  const double each = plan.devices * 23e3 * 1.2;
  EXPECT_EQ(site.plans, std::floor(750e6 / each));
  EXPECT_EQ(site.devices, site.plans * plan.devices);
  EXPECT_EQ(*site.racks, std::ceil(site.devices / 2));  // two systems each
  EXPECT_NEAR(site.watts / site.it_watts, 1.2, 1e-9);
  EXPECT_LE(site.watts, 750e6);
  EXPECT_GT(site.watts, 750e6 - each);
  EXPECT_EQ(site.users, site.plans * 80);
  EXPECT_NEAR(site.tokens_per_day(), site.users * plan.user_tokens_per_s() * 86400, 1);
  EXPECT_THROW(fill_site(plan, demand.users, 1e5), Error);  // less than one plan draws

  Candidate unknown = plan;
  Hardware without = *find_hardware("CS-3");
  without.numbers.erase("pue");
  unknown.placement.groups[0].hardware = std::make_shared<const Hardware>(without);
  try {
    fill_site(unknown, 1, 750e6);
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("CS-3: pue: missing")) << error.what();
  }
}

TEST(Site, MoreUsersAtOnceUntilTheirSpeedIsTooLow) {
  const ModelShape model = describe_model(*catalog_config("Meta-Llama-3.1-70B"));
  const std::vector<Hardware> hardware = {*find_hardware("H100")};
  Demand demand;
  demand.weights = weight_format("8bit");
  demand.compute_bits = 8;
  const Candidate any = search_site(model, hardware, demand)[0];
  EXPECT_TRUE(any.fault.empty());
  EXPECT_GT(demand.users, 8);
  const double users = demand.users;
  demand.min_speed = any.user_tokens_per_s() * 2;
  const Candidate fast = search_site(model, hardware, demand)[0];
  EXPECT_TRUE(fast.fault.empty());
  EXPECT_GE(fast.user_tokens_per_s(), demand.min_speed);
  EXPECT_LT(demand.users, users);
  EXPECT_GT(*fast.site_watts / fast.tokens_per_s, *any.site_watts / any.tokens_per_s);
}

}  // namespace
}  // namespace sluice
