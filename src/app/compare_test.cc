// What is simulated is what runs: the same batches from the same load, modelled and real.
#include <gtest/gtest.h>

#include <algorithm>

#include "app/calibrate.h"
#include "pipeline/pipeline.h"
#include "plan/sim.h"

namespace sluice {
namespace {

const std::filesystem::path kGolden = SLUICE_GOLDEN_DIR;

/// Writes down what another clock says.
class WritingClock : public LoadClock {
 public:
  WritingClock(LoadClock& inner, std::vector<double>& times) : inner_(inner), times_(times) {}
  double now_us() const override {
    times_.push_back(inner_.now_us());
    return times_.back();
  }
  void wait_until(double us) override { inner_.wait_until(us); }

 private:
  LoadClock& inner_;
  std::vector<double>& times_;
};

/// Says it again: requests arrive at a real pipeline between the same steps as at the modelled one.
class RepeatingClock : public LoadClock {
 public:
  explicit RepeatingClock(const std::vector<double>& times) : times_(times) {}
  double now_us() const override { return times_[std::min(next_++, times_.size() - 1)]; }
  void wait_until(double) override {}

 private:
  const std::vector<double>& times_;
  mutable size_t next_ = 0;
};

struct Logs {
  BatchLog simulated, real;
};

Logs run_both(const std::string& model, const WorkloadOptions& load, SimOptions options,
              std::vector<std::vector<int>> cores) {
  const std::unique_ptr<Checkpoint> checkpoint = open_checkpoint(kGolden / model);
  const int n_parts = int(make_model(*checkpoint)->blocks.size()) + 1;
  Plan plan = split_by_cost(std::vector<double>(size_t(n_parts), 1.0), int(cores.size()));
  for (size_t s = 0; s < cores.size(); ++s) plan.stages[s].cores = cores[s];
  options.vocab = 200;
  Logs logs;
  std::vector<double> times;
  {
    Workload workload(load);
    options.log = &logs.simulated;
    FlatCost cost;
    cost.us = 100;
    cost.us_per_row = 3;
    const SimRoute route = SimRoute::of(plan, {});
    SimExecutor executor(route, cost, options.pools, [](RequestId, int) { return Token(1); });
    WritingClock clock(executor, times);
    serve_load(executor, clock, workload, options);
  }
  Workload workload(load);
  options.log = &logs.real;
  Pipeline pipeline(*checkpoint, make_model(*checkpoint), plan,
                    {.pools = options.pools, .default_cores = {}});
  RepeatingClock clock(times);
  serve_load(pipeline, clock, workload, options);
  return logs;
}

SimOptions small_options() {
  SimOptions o;
  o.engine.chunk = 48;
  o.engine.max_sequences = 5;
  o.engine.speculation = Speculation::kOff;
  o.pools.n_pages = 24;
  return o;
}

TEST(SameBatches, PoissonArrivalsWithSharedPrefixesAndPreemptions) {
  WorkloadOptions load;
  load.requests = 60;
  load.rate = 400;
  load.prompt = 90;
  load.output = 40;
  load.spread = 0.4;
  SimOptions options = small_options();
  options.n_shared = 64;
  const int core = usable_cores().front();
  for (const auto& cores : {std::vector<std::vector<int>>{{}}, {{}, {core}}, {{}, {}, {core}}}) {
    const Logs logs = run_both("llama", load, options, cores);
    EXPECT_GT(logs.simulated.size(), 100u);
    EXPECT_EQ(logs.simulated, logs.real) << cores.size() << " stages";
  }
}

TEST(SameBatches, UsersOfARecurrentModel) {
  WorkloadOptions load;
  load.requests = 24;
  load.users = 4;
  load.prompt = 70;
  load.output = 20;
  load.spread = 0.5;
  SimOptions options = small_options();
  options.pools.n_state_slots = 12;
  const Logs logs = run_both("granite-4-hybrid", load, options, {{}, {usable_cores().front()}});
  EXPECT_EQ(logs.simulated, logs.real);
}

TEST(HostModel, CountsTheMatricesThatTheEnginePacks) {
  const auto checkpoint = open_checkpoint(kGolden / "qwen3-moe");
  const std::unique_ptr<Model> model = make_model(*checkpoint);
  const HostModel host = describe_for_host(*model, *checkpoint, /*i8=*/true);
  ASSERT_EQ(host.blocks.size(), model->blocks.size());
  const HostPart &attention = host.blocks[0], &experts = host.blocks[1];
  ASSERT_EQ(attention.ops.size(), 2u);  // q, k and v together; the output
  EXPECT_GT(attention.attend_values, 0);
  ASSERT_EQ(experts.ops.size(), 3u);  // the router, gate and up, down
  EXPECT_EQ(experts.ops[0].n_experts, 0);
  EXPECT_EQ(experts.ops[1].n_experts, int(checkpoint->config().integer("num_experts")));
  EXPECT_EQ(experts.ops[1].n_active, int(checkpoint->config().integer("num_experts_per_tok")));
  EXPECT_NEAR(experts.ops[1].bytes, 2 * experts.ops[2].bytes, 1e-9);
}

TEST(HostModel, TypesAreReadAsTheyAreWritten) {
  EXPECT_EQ(parse_types("Q4_1,F16"), (std::vector<DType>{DType::kQ4_1, DType::kF16}));
  EXPECT_THROW(parse_types("Q4_1,"), std::runtime_error);
  EXPECT_THROW(parse_types("Q9"), std::runtime_error);
}

}  // namespace
}  // namespace sluice
