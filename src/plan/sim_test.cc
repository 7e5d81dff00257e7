#include "plan/sim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "base/json.h"
#include "plan/sim_trace.h"

namespace sluice {
namespace {

SimRoute row_of(int n) {
  std::vector<std::string> names;
  for (int i = 0; i < n; ++i) names.push_back("s" + std::to_string(i));
  return SimRoute::row(names);
}

SimOptions options_for(int max_sequences, int n_pages) {
  SimOptions o;
  o.engine.max_sequences = max_sequences;
  o.engine.speculation = Speculation::kOff;
  o.pools.n_pages = n_pages;
  return o;
}

WorkloadOptions closed(int users, int requests, int prompt, int output) {
  WorkloadOptions w;
  w.users = users;
  w.requests = requests;
  w.prompt = prompt;
  w.output = output;
  return w;
}

FlatCost flat(double us, double us_per_row = 0, double link_us = 0) {
  FlatCost cost;
  cost.us = us;
  cost.us_per_row = us_per_row;
  cost.link_us = link_us;
  return cost;
}

SimReport run(const SimRoute& route, const FlatCost& cost, const WorkloadOptions& w,
              const SimOptions& o, SimTrace* trace = nullptr) {
  Workload workload(w);
  return simulate(route, cost, workload, o, trace);
}

// tokens/s of one user = 1 / (sum of stages + hops): every stage adds to every token.
TEST(Simulate, OneUserPaysEveryStageForEveryToken) {
  const SimReport r = run(row_of(10), flat(20, 0, 3), closed(1, 2, 32, 50), options_for(1, 8));
  EXPECT_EQ(r.n_finished, 2);
  EXPECT_NEAR(r.tpot_ms.mean, (10 * 20 + 9 * 3 + 3) / 1e3, 1e-9);
  EXPECT_NEAR(r.tpot_ms.p99, r.tpot_ms.p50, 1e-9);
  for (double busy : r.busy) EXPECT_NEAR(busy, 20.0 / 230, 0.01);
  EXPECT_FALSE(r.saturated);
}

// All users: 1 / slowest stage, once there is one for each stage.
TEST(Simulate, AFullPipelineGivesATokenPerStageTime) {
  const SimReport r = run(row_of(10), flat(20), closed(10, 40, 32, 400), options_for(10, 200));
  EXPECT_NEAR(r.output_tok_s, 1e6 / 20, 0.05e6 / 20);
  EXPECT_NEAR(r.tpot_ms.p50, 10 * 20 / 1e3, 0.02);
  for (double busy : r.busy) EXPECT_GT(busy, 0.95);
}

TEST(Simulate, StagesOnTheSameCoresTakeTurns) {
  Plan plan{.n_blocks = 3,
            .stages = {
                {"a", {{0, 1}}, false, {}}, {"b", {{1, 2}}, false, {}}, {"c", {{2, 3}}, true, {}}}};
  const SimRoute route = SimRoute::of(plan, {});
  EXPECT_EQ(route.n_servers, 1);
  const SimReport r = run(route, flat(20, 0, 5), closed(4, 8, 32, 100), options_for(4, 100));
  EXPECT_NEAR(r.tpot_ms.p50, 3 * 20 / 1e3, 1e-9);  // one batch at a time, of all four
  double busy = 0;
  for (double share : r.busy) busy += share;
  EXPECT_NEAR(busy, 1, 1e-6);
}

// Mixers on one stage, the rest on another: many hops between two servers, of two batches at once.
TEST(Simulate, HopsBackAndForthKeepBothServersBusy) {
  Plan plan{.n_blocks = 8,
            .stages = {{"mixers", {{0, 1}, {2, 3}, {4, 5}, {6, 7}}, false, {0}},
                       {"others", {{1, 2}, {3, 4}, {5, 6}, {7, 8}}, true, {1}}}};
  const SimRoute route = SimRoute::of(plan, {});
  EXPECT_EQ(route.n_servers, 2);
  EXPECT_EQ(route.hops.size(), 8u);
  const SimReport one = run(route, flat(10), closed(1, 1, 32, 100), options_for(1, 50));
  EXPECT_NEAR(one.tpot_ms.p50, 8 * 10 / 1e3, 1e-9);
  const SimReport two = run(route, flat(10), closed(2, 2, 32, 400), options_for(2, 50));
  EXPECT_NEAR(two.tpot_ms.p50, 8 * 10 / 1e3, 0.011);
  EXPECT_GT(two.busy[0], 0.9);
  EXPECT_GT(two.busy[1], 0.9);
}

TEST(Simulate, FollowsQueueingTheoryAtHalfLoad) {
  // One request at a time, all as long as each other: the Pollaczek-Khinchine formula. The prompt
  // is a batch, each further token another: 1000 us a request; half of that as the mean wait.
  WorkloadOptions w = closed(1, 20000, 32, 10);
  w.rate = 500;
  const SimReport r = run(row_of(1), flat(100), w, options_for(1, 4));
  EXPECT_FALSE(r.saturated);
  EXPECT_NEAR(r.ttft_ms.mean, 0.5 + 0.1, 0.03);
  EXPECT_NEAR(r.busy[0], 0.5, 0.01);
}

TEST(Simulate, SaysSaturatedWhenTheQueueGrows) {
  WorkloadOptions w = closed(1, 2000, 32, 10);
  w.rate = 1100;  // of 1000 that can be served
  EXPECT_TRUE(run(row_of(1), flat(100), w, options_for(1, 4)).saturated);
  w.requests = 1'000'000;
  w.rate = 5000;
  const SimReport hopeless = run(row_of(1), flat(100), w, options_for(1, 4));
  EXPECT_TRUE(hopeless.saturated);
  EXPECT_GT(hopeless.n_dropped, 900'000);
  EXPECT_EQ(hopeless.n_finished + hopeless.n_dropped, 1'000'000);
  w.requests = 2000;
  w.rate = 700;
  EXPECT_FALSE(run(row_of(1), flat(100), w, options_for(1, 4)).saturated);
  EXPECT_TRUE(run(row_of(1), flat(100), closed(8, 400, 32, 10), options_for(4, 20)).saturated);
  EXPECT_FALSE(run(row_of(1), flat(100), closed(8, 400, 32, 10), options_for(8, 40)).saturated);
}

TEST(Simulate, TurnsFindTheirSessionInThePrefixCache) {
  WorkloadOptions w = closed(2, 40, 320, 32);
  w.turns = 10;
  w.turn_prompt = 32;
  const SimReport cached = run(row_of(2), flat(10, 1), w, options_for(2, 200));
  EXPECT_GT(cached.cached_share, 0.7);
  SimOptions without = options_for(2, 200);
  without.engine.prefix_cache = false;
  const SimReport computed = run(row_of(2), flat(10, 1), w, without);
  EXPECT_EQ(computed.cached_share, 0);
  EXPECT_LT(cached.ttft_ms.mean, 0.5 * computed.ttft_ms.mean);
}

// Each pass of a user through all stages gives as many tokens as are kept, and takes the guessing.
TEST(Simulate, SpeculationKeepsWhatWasPublished) {
  SimOptions o = options_for(1, 80);
  o.draft = draft_named("mtp-3");
  FlatCost cost = flat(20, 0, 3);
  cost.guess_us = 5;
  const SimReport r = run(row_of(10), cost, closed(1, 4, 32, 2000), o);
  EXPECT_NEAR(r.accepted, 2.49, 0.03);
  EXPECT_NEAR(r.tpot_ms.mean, (10 * 23 + 3 * 5) / 2.49 / 1e3, 0.002);
  EXPECT_NEAR(double(r.rows) / double(r.batches), 4, 0.1);  // verified rows are computed
  EXPECT_EQ(r.n_finished, 4);
  o.seed = 2;
  const SimReport other = run(row_of(10), cost, closed(1, 4, 32, 2000), o);
  EXPECT_NE(other.duration_s, r.duration_s);
  EXPECT_NEAR(other.duration_s, r.duration_s, 0.03 * r.duration_s);
}

// A full pipeline gains nothing from guesses that cost as much as other users' tokens.
TEST(Simulate, SpeculationInAFullPipelinePaysForItsRows) {
  SimOptions o = options_for(10, 400);
  const FlatCost cost = flat(0, 20);
  const double plain = run(row_of(10), cost, closed(10, 40, 32, 400), o).output_tok_s;
  o.draft = draft_named("mtp-3");
  const double drafted = run(row_of(10), cost, closed(10, 40, 32, 400), o).output_tok_s;
  EXPECT_NEAR(drafted / plain, 2.49 / 4, 0.05);
}

// Results come in the order of their batches, also if a batch without guesses is sent right behind
// one that waits for many.
TEST(Simulate, PromptsDoNotOvertakeGuesses) {
  SimOptions o = options_for(6, 200);
  o.engine.chunk = 16;
  o.draft = draft_named("mtp-3");
  FlatCost cost = flat(5);
  cost.guess_us = 100;
  EXPECT_EQ(run(row_of(4), cost, closed(6, 60, 64, 20), o).n_finished, 60);
}

/// Wires take time for every row.
struct WiredCost : BatchCost {
  void price(const BatchLoad& load, BatchPrice& price) const override {
    for (double& hop : price.hop_us) hop = 2;
    for (double& link : price.link_us) link = 10 * load.n_rows;
    price.scheduler_us = price.draft_us = 0;
  }
};

TEST(Simulate, SmallFramesDoNotOvertakeLargeOnes) {
  SimRoute route = row_of(3);
  route.hops = {{0, 0}, {1, 1}, {2, 2}, {1, 1}, {0, 0}};
  SimOptions o = options_for(6, 200);
  o.engine.chunk = 16;
  Workload workload(closed(6, 60, 64, 20));
  EXPECT_EQ(simulate(route, WiredCost(), workload, o).n_finished, 60);
}

TEST(Simulate, CountsPreemptionsAndRefusals) {
  const SimReport tight = run(row_of(1), flat(10), closed(4, 16, 64, 200), options_for(4, 20));
  EXPECT_GT(tight.preemptions, 0u);
  EXPECT_EQ(tight.n_finished, 16);
  const SimReport refused = run(row_of(1), flat(10), closed(1, 5, 64, 1000), options_for(1, 20));
  EXPECT_EQ(refused.n_refused, 5);
  EXPECT_EQ(refused.n_finished, 0);
}

TEST(Simulate, GoodputCountsAnswersWithinTheLimits) {
  WorkloadOptions w = closed(1, 1000, 32, 10);
  w.rate = 700;
  SimOptions o = options_for(1, 4);
  o.max_ttft_ms = 1;
  const SimReport r = run(row_of(1), flat(100), w, o);
  EXPECT_GT(r.good_share, 0.2);
  EXPECT_LT(r.good_share, 0.9);
  EXPECT_NEAR(r.goodput_req_s, r.good_share * r.n_finished / r.duration_s, 1e-6);
  o.max_tpot_ms = 0.05;
  EXPECT_EQ(run(row_of(1), flat(100), w, o).good_share, 0);
}

TEST(Simulate, TheSameSeedGivesTheSameRun) {
  WorkloadOptions w = closed(1, 500, 100, 20);
  w.rate = 100;
  w.spread = 0.5;
  const SimReport a = run(row_of(4), flat(50, 1), w, options_for(8, 400));
  const SimReport b = run(row_of(4), flat(50, 1), w, options_for(8, 400));
  EXPECT_EQ(a.ttft_ms.mean, b.ttft_ms.mean);
  EXPECT_EQ(a.batches, b.batches);
  w.seed = 2;
  EXPECT_NE(run(row_of(4), flat(50, 1), w, options_for(8, 400)).ttft_ms.mean, a.ttft_ms.mean);
}

TEST(Simulate, TheTraceShowsBatchesInOrderOnEveryLane) {
  SimTrace trace(100000);
  const SimRoute route = row_of(3);
  const SimReport r = run(route, flat(10), closed(3, 6, 100, 20), options_for(3, 100), &trace);
  std::ostringstream out;
  trace.write(out, route);
  const Json json = parse_json(out.str(), "trace");
  std::map<int, double> free_at;
  std::map<std::string, int> lanes_of;
  int n_arrows = 0, n_requests = 0;
  for (const Json& event : json.at("traceEvents")) {
    const std::string phase = event.at("ph");
    n_arrows += phase == "s";
    n_requests += phase == "b" && event.at("name") == "request";
    if (phase != "X") continue;
    const double start = event.at("ts"), end = start + event.at("dur").get<double>();
    EXPECT_GE(start, free_at[event.at("tid")]);
    EXPECT_EQ(int(event.at("tid")), lanes_of[event.at("name")]++);
    free_at[event.at("tid")] = end;
  }
  EXPECT_EQ(lanes_of.size(), r.batches);
  EXPECT_EQ(n_arrows, int(r.batches));
  EXPECT_EQ(n_requests, 6);
  EXPECT_FALSE(trace.is_cut());
}

TEST(Percentiles, AreNearestRanks) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Percentiles p = percentiles(values);
  EXPECT_EQ(p.p50, 50);
  EXPECT_EQ(p.p90, 90);
  EXPECT_EQ(p.p99, 99);
  EXPECT_EQ(p.mean, 50.5);
  EXPECT_EQ(percentiles({}).p99, 0);
  EXPECT_EQ(percentiles({3}).p50, 3);
}

}  // namespace
}  // namespace sluice
