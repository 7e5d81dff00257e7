#include "plan/search.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "plan/catalog.h"
#include "plan/claims.h"
#include "plan/describe.h"
#include "plan/first_token.h"
#include "plan/hypothetical.h"
#include "plan/prefill.h"
#include "plan/sim.h"
#include "plan/sim_placed.h"

namespace sluice {
namespace {

ModelShape model_named(const std::string& name) {
  ModelShape model = describe_model(*catalog_config(name));
  model.name = name;
  return model;
}

Demand demand_of(double users, const std::string& weights) {
  Demand demand{.users = users};
  demand.weights = weight_format(weights);
  demand.compute_bits = weights == "4bit" ? 4 : 8;
  return demand;
}

TEST(Search, BestPlanFitsAndIsCheapest) {
  const ModelShape model = model_named("Meta-Llama-3.1-70B");
  const std::vector<Candidate> all = search(model, {*find_hardware("H100")}, demand_of(16, "8bit"));
  ASSERT_GT(all.size(), 5u);
  EXPECT_TRUE(all[0].fault.empty());
  EXPECT_TRUE(all[0].fullest.fits());
  for (const Candidate& c : all) {
    if (c.fault.empty()) {
      EXPECT_LE(*all[0].usd_per_mtok(), *c.usd_per_mtok());
    } else {
      EXPECT_GT(c.short_by, 1) << c.fault;
    }
  }
}

TEST(Search, WaysAreTheSameForEveryLoad) {
  const ModelShape model = model_named("Kimi-K3");
  for (const auto& names :
       {std::vector<std::string>{"H100"}, {"CS-3"}, {"Groq-LPX"}, {"B200", "CS-3"}}) {
    std::vector<Hardware> hardware;
    for (const std::string& name : names) hardware.push_back(*find_hardware(name));
    std::vector<std::map<int, std::string>> name_of_way;
    for (const auto& [users, prompt] : {std::pair(1.0, 1024.0), {256.0, 1048576.0}}) {
      Demand demand = demand_of(users, "4bit");
      demand.prompt = prompt;
      auto& name = name_of_way.emplace_back();
      for (const Candidate& c : search(model, hardware, demand)) {
        for (int way : c.ways) EXPECT_TRUE(name.emplace(way, c.name).second) << way;
      }
    }
    ASSERT_EQ(name_of_way[0].size(), name_of_way[1].size());
    for (const auto& [way, name] : name_of_way[0]) {
      ASSERT_TRUE(name_of_way[1].contains(way)) << way;
      EXPECT_TRUE(names[0] != "H100" || name == name_of_way[1][way]) << name;
    }
  }
}

TEST(Search, LimitsAreKeptOrNamed) {
  const ModelShape model = model_named("Meta-Llama-3.1-70B");
  Demand demand = demand_of(16, "8bit");
  demand.min_speed = 60;
  const Candidate best = search(model, {*find_hardware("H100")}, demand)[0];
  EXPECT_TRUE(best.fault.empty());
  EXPECT_GE(best.user_tokens_per_s(), 60);
  demand.min_speed = 1e6;
  const Candidate none = search(model, {*find_hardware("H100")}, demand)[0];
  EXPECT_NE(none.fault.find("tokens/s per user of 1000000"), std::string::npos);
  EXPECT_GT(none.short_by, 100);
}

TEST(Search, AllHardwareThatLoadsAModelIsPriced) {
  const ModelShape model = model_named("Meta-Llama-3.1-8B");
  for (const std::string& name : hardware_names()) {
    const std::vector<Hardware> hardware = {*find_hardware(name)};
    if (name == "Taalas-HC1") {
      EXPECT_THROW(search(model, hardware, demand_of(1, "8bit")), Error);
      continue;
    }
    const Candidate best = search(model, hardware, demand_of(1, "8bit"))[0];
    EXPECT_TRUE(best.fault.empty()) << name << ": " << best.fault;
    EXPECT_GT(best.user_tokens_per_s(), 20) << name;
    EXPECT_LT(best.user_tokens_per_s(), 20000) << name;
  }
}

// Artificial Analysis, 2024.
TEST(Search, AnLpuIsAsFastAsMeasured) {
  const std::vector<Hardware> lpu = {*find_hardware("Groq-LPU")};
  Demand demand = demand_of(1, "8bit");
  demand.fastest = true;
  const auto speed = [&](const char* model) {
    return search(model_named(model), lpu, demand)[0].user_tokens_per_s();
  };
  EXPECT_NEAR(speed("Meta-Llama-3.1-8B"), 751, 0.35 * 751);
  EXPECT_NEAR(speed("Meta-Llama-3.1-70B"), 265, 0.35 * 265);
}

// 16 sockets read the weights together. Llama-3.1-70B and 405B are served faster than the memory of
// 16 sockets can be read once per token, so they are speculated on.
TEST(Search, AnRduReadsItsWeightsOnSixteenSockets) {
  const std::vector<Hardware> rdu = {*find_hardware("SN40L")};
  Demand demand = demand_of(1, "bf16");
  demand.compute_bits = 16;
  demand.prompt = 1024;
  demand.fastest = true;
  const auto speed = [&](const char* model, const char* draft) {
    demand.draft = draft_named(draft);
    const Candidate best = search(model_named(model), rdu, demand)[0];
    EXPECT_EQ(best.devices, 16) << best.name;
    return best.user_tokens_per_s();
  };
  EXPECT_NEAR(speed("Meta-Llama-3.1-8B", "none"), 1042, 0.1 * 1042);
  EXPECT_LT(speed("Meta-Llama-3.1-70B", "none"), 457 / 2.5);
  EXPECT_NEAR(speed("Meta-Llama-3.1-70B", "eagle3-4"), 457, 0.35 * 457);
  EXPECT_LT(speed("Meta-Llama-3.1-405B", "none"), 129 / 4.0);
  EXPECT_NEAR(speed("Meta-Llama-3.1-405B", "eagle3-8"), 129, 0.35 * 129);
}

TEST(Search, WafersNeedWhatTheirMemoryHolds) {
  const ModelShape model = model_named("Kimi-K3");
  const std::vector<Candidate> all = search(model, {*find_hardware("CS-3")}, demand_of(8, "4bit"));
  EXPECT_TRUE(all[0].fault.empty());
  const double least = weights_bytes(model, weight_format("4bit")) / (44e9 * 0.8);
  for (const Candidate& c : all) {
    if (c.fault.empty()) {
      EXPECT_GE(c.devices, least);
    }
  }
  // A stage more is a hop more of every token.
  Demand fastest = demand_of(1, "4bit");
  fastest.fastest = true;
  const std::vector<Candidate> ranked = search(model, {*find_hardware("CS-3")}, fastest);
  EXPECT_LT(ranked[0].devices, ranked[1].devices);
}

TEST(Search, AttentionAndFeedForwardApart) {
  const ModelShape model = model_named("Kimi-K3");
  const std::vector<Candidate> all =
      search(model, {*find_hardware("B200"), *find_hardware("CS-3")}, demand_of(4, "4bit"));
  const Candidate& best = all[0];
  EXPECT_TRUE(best.fault.empty()) << best.fault;
  EXPECT_GT(best.hops_us, 2 * 60 * 3);  // two hops per layer
  EXPECT_NE(best.name.find("B200"), std::string::npos);
  EXPECT_NE(best.name.find("CS-3"), std::string::npos);
}

TEST(Search, SpeculationPaysForItsRows) {
  const ModelShape model = model_named("DeepSeek-V3");
  Demand demand = demand_of(1, "8bit");
  const double plain = search(model, {*find_hardware("B200")}, demand)[0].user_tokens_per_s();
  demand.draft = draft_named("mtp-3");
  const double drafted = search(model, {*find_hardware("B200")}, demand)[0].user_tokens_per_s();
  EXPECT_GT(drafted, plain);
  EXPECT_LT(drafted, 2.49 * plain);
  EXPECT_THROW(draft_named("guess"), Error);
}

TEST(Search, GuessesFillAPipeWhileStagesAreIdle) {
  const ModelShape model = model_named("Kimi-K3");
  Demand demand = demand_of(1, "4bit");
  Placement placement = search(model, {*find_hardware("CS-3")}, demand)[0].placement;
  const double plain = price(model, placement, demand).token_us;
  demand.draft = draft_named("pipe");
  const Candidate one = price(model, placement, demand);
  EXPECT_GT(one.in_pipe, 4);
  EXPECT_NEAR(plain / one.token_us, pipe_gain(one.in_pipe), 1e-9);
  // With a batch of users for every stage there is nothing to fill.
  demand.users = 1000;
  const Candidate many = price(model, placement, demand);
  EXPECT_EQ(many.in_pipe, 1);
  EXPECT_EQ(many.accepted, 1);
}

// The simulation of a plan with a draft takes as long as the plan says.
TEST(Search, SimulatedSpeculationIsAsFastAsPlanned) {
  const ModelShape model = model_named("Kimi-K3");
  Demand demand = demand_of(1, "4bit");
  demand.prompt = 512;
  demand.output = 256;
  demand.draft = draft_named("dspark-4");
  const Candidate plan = search(model, {*find_hardware("CS-3")}, demand)[0];
  const SimRoute route = SimRoute::devices(plan.placement.plan);
  const PlacedCost cost(CostModel(model, plan.placement));
  WorkloadOptions load;
  load.requests = 40;
  load.prompt = demand.prompt;
  load.output = demand.output;
  Workload workload(load);
  SimOptions options;
  options.pools.n_pages = 100;
  options.draft = demand.draft;
  const SimReport report = simulate(route, cost, workload, options);
  EXPECT_NEAR(report.tpot_ms.mean * 1e3, plan.token_us, 0.03 * plan.token_us);
}

double simulated_first_ms(const ModelShape& model, const Placement& placement, int prompt) {
  WorkloadOptions load;
  load.requests = 3;
  load.prompt = prompt;
  load.output = 1;
  Workload workload(load);
  SimOptions options;
  options.engine.chunk = kPromptChunk;
  options.engine.prefix_cache = false;
  options.pools.n_pages = 4000;
  return simulate(SimRoute::devices(placement.plan), PlacedCost(CostModel(model, placement)),
                  workload, options)
      .ttft_ms.mean;
}

// The scheduler cuts a prompt into chunks that follow each other through the stages; the plan
// prices it so.
TEST(Search, SimulatedFirstTokenIsAsSoonAsPlanned) {
  struct Case {
    const char *model, *weights;
    std::vector<const char*> on;
    double bound;
  };
  const Case cases[] = {{"DeepSeek-V3", "8bit", {"B200"}, 0.001},
                        {"DeepSeek-V3", "8bit", {"H100"}, 0.03},  // two stages
                        {"DeepSeek-V3", "8bit", {"CS-3"}, 0.03},
                        {"Kimi-K3", "4bit", {"CS-3"}, 0.03},
                        {"Meta-Llama-3.1-70B", "8bit", {"Groq-LPU"}, 0.03},
                        {"Meta-Llama-3.1-70B", "bf16", {"B200", "CS-3"}, 0.2}};
  for (const Case& c : cases) {
    const ModelShape model = model_named(c.model);
    std::vector<Hardware> hardware;
    for (const char* name : c.on) hardware.push_back(*find_hardware(name));
    for (int prompt : {1, 300, 8192, 96300}) {
      Demand demand = demand_of(1, c.weights);
      demand.prompt = prompt;
      const Candidate plan = search(model, hardware, demand)[0];
      EXPECT_NEAR(simulated_first_ms(model, plan.placement, prompt) / plan.first_ms, 1, c.bound)
          << plan.name << ", " << prompt;
    }
  }
}

TEST(Search, APromptElsewhereIsSentOver) {
  const ModelShape model = model_named("DeepSeek-V3");
  Demand demand = demand_of(64, "8bit");
  demand.prompt = 8192;
  const Prefill plan =
      prefill_elsewhere(model, *find_hardware("B200"), *find_hardware("CS-3"), demand);
  EXPECT_NEAR(plan.transfer_ms, 8192 * 70272 / 150e9 * 1e3, 1e-6);
  EXPECT_NEAR(simulated_first_ms(model, plan.placement, 8192), plan.compute_ms,
              0.001 * plan.compute_ms);
}

// The pool computes one prompt at a time; the decoder computes the last position again.
TEST(Search, SimulatedPrefillElsewhereTakesItsTurn) {
  const ModelShape model = model_named("DeepSeek-V3");
  const Hardware b200 = *find_hardware("B200"), cs3 = *find_hardware("CS-3");
  Demand demand = demand_of(4, "8bit");
  demand.prompt = 8192;
  const Candidate plan = search(model, {cs3}, demand)[0];
  const Prefill prefill = prefill_elsewhere(model, b200, cs3, demand);
  const CostModel there(model, prefill.placement);
  const PrefillPool pool{.compute_us = [&](int prompt) { return first_token_us(there, prompt); },
                         .transfer_us =
                             [&](int prompt) {
                               return 1e3 * transfer_ms(b200, cs3,
                                                        cache_bytes(model, prompt, demand.cache));
                             }};
  const auto report = [&](int users) {
    WorkloadOptions load;
    load.requests = load.users = users;
    load.prompt = 8192;
    load.output = 64;
    Workload workload(load);
    SimOptions options;
    options.engine.chunk = 8300;
    options.engine.prefix_cache = false;
    options.pools.n_pages = 4000;
    options.prefill = &pool;
    return simulate(SimRoute::devices(plan.placement.plan),
                    PlacedCost(CostModel(model, plan.placement), true), workload, options);
  };
  const SimReport one = report(1), four = report(4);
  const double step_ms = one.tpot_ms.mean;
  EXPECT_NEAR(one.ttft_ms.mean, prefill.first_ms() + step_ms, 0.01 * prefill.first_ms());
  EXPECT_NEAR(step_ms, plan.token_us / 1e3, 0.1 * step_ms);
  EXPECT_NEAR(four.ttft_ms.p99, 4 * prefill.compute_ms + prefill.transfer_ms + step_ms,
              0.02 * four.ttft_ms.p99);
  EXPECT_GT(four.prefill_busy, 0.8);
  EXPECT_EQ(four.n_finished, 4);
}

TEST(Search, APlanSurvivesItsFile) {
  const ModelShape model = model_named("Kimi-K3");
  const Candidate best = search(model, {*find_hardware("CS-3")}, demand_of(2, "4bit"))[0];
  const Json json = parse_json(placement_to_json(best.placement, "Kimi-K3").dump(), "plan.json");
  const Candidate again =
      price(model, placement_from_json(json, "plan.json"), demand_of(2, "4bit"));
  EXPECT_EQ(again.name, best.name);
  EXPECT_NEAR(again.token_us, best.token_us, 1e-6 * best.token_us);
  Json wrong = json;
  wrong["stages"][1]["hardware"] = "H20";
  try {
    placement_from_json(wrong, "plan.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("stage 1: hardware: H20"), std::string::npos);
  }
}

TEST(Hypothetical, HasTheParametersItIsGiven) {
  for (const std::string& attention : attention_names()) {
    const ModelShape model = *hypothetical_named("3T/150B/80/" + attention);
    EXPECT_NEAR(model.parameters() / 3e12, 1, 0.01);
    EXPECT_NEAR(model.active_parameters() / 150e9, 1, 0.02);
    EXPECT_EQ(model.n_layers, 80);
  }
  const auto cache = [](const char* name) {
    return cache_bytes(*hypothetical_named(name), 1e6, CacheFormat::k16Bit);
  };
  EXPECT_GT(cache("3T/150B/80/gqa"), 3 * cache("3T/150B/80/mla"));
  EXPECT_GT(cache("3T/150B/80/mla"), 5 * cache("3T/150B/80/compressed"));
  EXPECT_FALSE(hypothetical_named("Kimi-K3"));
  EXPECT_THROW(hypothetical_named("3T/4T/80/gqa"), Error);
  EXPECT_THROW(hypothetical_named("3T/150B/80/magic"), Error);
  EXPECT_THROW(hypothetical_named("24T/1B/80/mla"), Error);
}

TEST(Claims, ShippedClaimsHaveTheirVerdicts) {
  std::map<std::string, std::string> verdicts;
  for (const Verdict& v : check_claims(shipped_claims(), "claims")) {
    verdicts[v.id] = v.verdict;
    EXPECT_FALSE(v.why.empty()) << v.id;
  }
  const std::map<std::string, std::string> expected = {{"750-tokens", "consistent"},
                                                       {"wafers-4-or-8-bit", "consistent"},
                                                       {"wafers-16-bit", "inconsistent"},
                                                       {"layer-per-wafer", "consistent"},
                                                       {"layer-per-wafer-16-bit", "inconsistent"},
                                                       {"3t-parameters", "undetermined"},
                                                       {"150b-active", "circular"},
                                                       {"stages-all-users", "consistent"},
                                                       {"stages-one-user", "inconsistent"},
                                                       {"200x-nvlink", "consistent"},
                                                       {"24t-in-sram", "inconsistent"},
                                                       {"price-5-30", "consistent"},
                                                       {"cache-exhausts-sram", "undetermined"},
                                                       {"attention-on-gpu", "undetermined"}};
  EXPECT_EQ(verdicts, expected);
}

TEST(Claims, WrongFilesNameTheField) {
  const auto fault = [](const char* check) -> std::string {
    const Json json = {{"claims",
                        {{{"id", "x"},
                          {"claim", "c"},
                          {"kind", "assumed"},
                          {"source", "s"},
                          {"check", parse_json(check, "check")}}}}};
    try {
      check_claims(json, "f.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(fault(R"({"type": "magic"})").find("f.json: x: type: expected one of speed"),
            std::string::npos);
  EXPECT_NE(fault(R"({"type": "ratio", "times": -2})").find("times"), std::string::npos);
  EXPECT_NE(fault(R"({"type": "split", "layers": [9, 1]})").find("layers"), std::string::npos);
  EXPECT_NE(fault(R"({"type": "devices", "hardware": "abacus"})").find("abacus"),
            std::string::npos);
  EXPECT_THROW(check_claims(Json::object(), "f.json"), Error);
}

}  // namespace
}  // namespace sluice
