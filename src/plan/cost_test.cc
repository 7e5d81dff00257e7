#include "plan/cost.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/catalog.h"
#include "plan/describe.h"

namespace sluice {
namespace {

ModelShape model_named(const std::string& name) {
  ModelShape model = describe_model(*catalog_config(name));
  model.name = name;
  return model;
}

Placement even_placement(const ModelShape& model, const std::string& hardware, int n_stages,
                         DeviceGroup group = {}) {
  Placement placement{.weights = weight_format("8bit"), .compute_bits = 8};
  placement.plan = split_by_cost(std::vector<double>(model.blocks.size() + 1, 1), n_stages);
  group.hardware = std::make_shared<const Hardware>(*find_hardware(hardware));
  placement.groups.assign(size_t(n_stages), group);
  return placement;
}

TEST(Cost, ReadsTheWeightsOfASmallBatchOnce) {
  const ModelShape model = model_named("Meta-Llama-3.1-70B");
  const CostModel cost(model, even_placement(model, "H100", 1, {.tensor = 8}));
  const TimeSplit time = cost.stage_time(0, decode_shape(1, 1));
  const Efficiency efficiency = efficiency_of(*find_hardware("H100"), shipped_calibration(), "", 8);
  double bytes = weights_bytes(model.head, weight_format("8bit"));
  for (const PartShape& part : model.blocks) bytes += weights_bytes(part, weight_format("8bit"));
  EXPECT_NEAR(time.memory_us, bytes / 8 / (efficiency.memory * 3.35e12) * 1e6,
              1e-3 * time.memory_us);
  EXPECT_EQ(time.compute_us, 0);
  EXPECT_GT(time.collective_us, 2 * 80 * efficiency.collective_us);
  EXPECT_NEAR(time.launch_us,
              2 * 80 * efficiency.block_us + efficiency.step_us + efficiency.sequence_us, 1e-6);
}

TEST(Cost, ComputeLimitsALargeBatch) {
  const ModelShape model = model_named("Meta-Llama-3.1-8B");
  const CostModel cost(model, even_placement(model, "H100", 1));
  const TimeSplit time = cost.stage_time(0, prefill_shape(8192, 0));
  // Matrices in 8 bits, attention in 16.
  const double flops = 2 * (model.active_parameters() - model.head.total()) * 8192 +
                       2 * 32 * 32 * 256 * 8192.0 * 8193 / 2 * 1979 / 989;
  const Efficiency efficiency = efficiency_of(*find_hardware("H100"), shipped_calibration(), "", 8);
  EXPECT_NEAR(time.compute_us, flops / (efficiency.compute * 1979e12) * 1e6,
              0.01 * time.compute_us);
}

TEST(Cost, AShortPromptTakesTheHostsTime) {
  const ModelShape model = model_named("Meta-Llama-3.1-8B");
  const CostModel cost(model, even_placement(model, "B200", 1, {.tensor = 8}));
  const Efficiency efficiency = efficiency_of(*find_hardware("B200"), shipped_calibration(), "", 8);
  const double host_us = 2 * 32 * efficiency.host_block_us;
  const double fixed_us = cost.stage_time(0, prefill_shape(16, 0)).total_us();
  EXPECT_GE(fixed_us, host_us);
  EXPECT_NEAR(cost.stage_time(0, prefill_shape(32, 0)).total_us(), fixed_us, 0.01 * fixed_us);
  EXPECT_LT(cost.stage_time(0, decode_shape(1, 16)).total_us(), host_us);  // one graph
  EXPECT_GT(cost.stage_time(0, prefill_shape(8192, 0)).total_us(), 1.5 * fixed_us);
}

TEST(Cost, StagesAndHopsAddUp) {
  const ModelShape model = model_named("Kimi-K3");
  const CostModel one(model, even_placement(model, "CS-3", 1));
  const CostModel many(model, even_placement(model, "CS-3", 60));
  const BatchShape batch = decode_shape(4, 10000);
  double sum = 0, transfers = 0;
  for (int s = 0; s < 60; ++s) sum += many.stage_time(s, batch).total_us();
  for (size_t hop = 0; hop < many.hops().size(); ++hop) transfers += many.transfer_us(hop, batch);
  EXPECT_NEAR(sum, one.stage_time(0, batch).total_us(), 1e-6 * sum);
  const double fixed = find_hardware("CS-3")->find("token_latency")->value * 1e6;
  EXPECT_GT(one.stage_time(0, batch).launch_us, fixed);
  EXPECT_LT(many.stage_time(59, batch).launch_us, fixed / 10);
  EXPECT_EQ(one.transfer_us(0, batch), 0);
  EXPECT_GT(transfers, 60 * 3);
  EXPECT_NEAR(many.latency_us(batch), sum + transfers, 1e-6 * sum);
}

TEST(Cost, CountsTheBytesOfEachDevice) {
  const ModelShape model = model_named("Meta-Llama-3.1-70B");
  const WeightFormat format = weight_format("8bit");
  const CostModel cost(model, even_placement(model, "H100", 2, {.tensor = 16}));
  double weights = 0, cache = 0;
  for (int stage : {0, 1}) {
    weights += cost.memory(stage, 3, 1024).weights_bytes;
    cache += cost.memory(stage, 3, 1024).cache_bytes;
  }
  EXPECT_NEAR(weights, weights_bytes(model, format) / 16, 1);
  // 8 heads on 16 devices: each is kept twice.
  EXPECT_NEAR(cache, 3 * cache_bytes(model, 1024, CacheFormat::k16Bit) / 8, 1);
  EXPECT_TRUE(cost.memory(0, 3, 1024).fits());
  EXPECT_FALSE(cost.memory(0, 1e6, 1024).fits());
}

TEST(Cost, ExpertsAreTouchedByTheWholeBatch) {
  const ModelShape model = model_named("DeepSeek-V3");
  const CostModel cost(model, even_placement(model, "B200", 1, {.data = 8, .expert = 8}));
  const double one = cost.stage_time(0, decode_shape(8, 100)).memory_us;
  const double many = cost.stage_time(0, decode_shape(512, 100)).memory_us;
  EXPECT_GT(many, 2 * one);
  EXPECT_LT(many, 64 * one);
}

TEST(Cost, TheFullestGroupOfExpertsIsNoFullerWhenAllAreTouched) {
  const ModelShape model = model_named("DeepSeek-V3");
  const auto memory_us = [&](int expert, double sequences) {
    const DeviceGroup group{.tensor = 8, .expert = expert};
    const CostModel cost(model, even_placement(model, "B200", 1, group));
    return cost.stage_time(0, decode_shape(sequences, 1)).memory_us;
  };
  EXPECT_GT(memory_us(8, 8), 1.1 * memory_us(1, 8));
  EXPECT_LT(memory_us(8, 256), 1.02 * memory_us(1, 256));
}

TEST(Cost, UnpacksFourBitsWhereThereIsNoArithmeticForThem) {
  const ModelShape model = model_named("Meta-Llama-3.1-8B");
  const auto compute_us = [&](int bits) {
    Placement placement = even_placement(model, "H100", 1);
    placement.compute_bits = bits;
    return CostModel(model, placement).stage_time(0, prefill_shape(8192, 0)).compute_us;
  };
  EXPECT_NEAR(compute_us(4), compute_us(16), 1e-6 * compute_us(16));
  EXPECT_LT(compute_us(8), 0.7 * compute_us(16));
}

TEST(Cost, SparseAttentionReadsWhatItSelects) {
  const ModelShape dense = model_named("DeepSeek-V3"), sparse = model_named("DeepSeek-V3.2");
  const auto growth = [](const ModelShape& model) {
    const CostModel cost(model, even_placement(model, "B200", 1, {.tensor = 8}));
    return cost.latency_us(decode_shape(64, 1e5)) - cost.latency_us(decode_shape(64, 1e4));
  };
  EXPECT_LT(growth(sparse), 0.3 * growth(dense));
}

template <typename Run>
std::string fault(Run run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Cost, NamesWhatIsWrong) {
  const ModelShape model = model_named("Meta-Llama-3.1-8B");
  Placement placement = even_placement(model, "H100", 2);
  placement.groups[1].tensor = 0;
  EXPECT_NE(fault([&] { CostModel(model, placement); }).find("tensor"), std::string::npos);
  placement.groups.pop_back();
  EXPECT_NE(fault([&] { CostModel(model, placement); }).find("each of 2"), std::string::npos);
  placement = even_placement(model, "H100", 1);
  const auto forget = [&](const char* number) {
    Hardware hardware = *placement.groups[0].hardware;
    hardware.numbers.erase(number);
    placement.groups[0].hardware = std::make_shared<const Hardware>(hardware);
  };
  forget("memory_bandwidth");
  EXPECT_NE(fault([&] { CostModel(model, placement); }).find("memory_bandwidth"),
            std::string::npos);
  placement = even_placement(model, "Groq-LPX", 1);
  forget("layer_latency");
  const std::string no_latency = fault([&] { CostModel(model, placement); });
  EXPECT_NE(no_latency.find("layer_latency"), std::string::npos);
  placement = even_placement(model, "H100", 1);
  placement.plan.n_blocks = 7;
  EXPECT_NE(fault([&] { CostModel(model, placement); }).find("expected 64"), std::string::npos);
}

}  // namespace
}  // namespace sluice
