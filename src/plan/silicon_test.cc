#include "plan/silicon.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "plan/fit.h"
#include "plan/wafer.h"

namespace sluice {
namespace {

constexpr const char* kHeader =
    "id,silicon_data_source,backend,backend_version,model_path,system,precision,mode,isl,osl,"
    "batch_size,tp_size,pp_size,attention_dp_size,moe_tp_size,moe_ep_size,decode_tp_size,"
    "decode_moe_ep_size,decode_num_workers,silicon_ttft_ms,silicon_tpot_ms\n";

/// A row of made-up numbers.
std::string row(const std::string& id, const std::string& model, int concurrency, int tensor,
                double tpot_ms, double ttft_ms = 100) {
  return fmt::format(
      "{},\"dump, of; "
      "silicon_concurrency={}\",vllm,1.0,{},h200_sxm,fp8,agg,1024,1024,{},{},1,1,{},1,"
      ",,,{},{}\n",
      id, concurrency, model, concurrency, tensor, tensor, ttft_ms, tpot_ms);
}

TEST(Silicon, ReadsRowsWithTheirLoad) {
  const std::string csv = kHeader + row("a", "meta-llama/Llama-3.1-70B", 16, 8, 12.5);
  const std::vector<SiliconRow> rows = read_silicon(csv, "rows.csv");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].model, "meta-llama/Llama-3.1-70B");
  EXPECT_EQ(rows[0].concurrency, 16);
  EXPECT_EQ(rows[0].tensor, 8);
  EXPECT_EQ(rows[0].tpot_ms, 12.5);
  EXPECT_FALSE(rows[0].speculative);
}

TEST(Silicon, LayoutOfRowsThatCountTwice) {
  SiliconRow r{.id = "x_tp8_ep8_1",
               .model = {},
               .system = {},
               .engine = {},
               .engine_version = {},
               .precision = {},
               .measured_on = {}};
  r.tensor = 64;
  r.expert = r.expert_tensor = 8;
  const SiliconLayout layout = layout_of(r, 8, true);
  EXPECT_EQ(layout.tensor, 8);
  EXPECT_EQ(layout.data, 1);
  EXPECT_EQ(layout.expert, 8);
  r.tensor = 1;
  r.data = 64;
  EXPECT_EQ(layout_of(r, 8, true).data, 8);
  r.disaggregated = true;
  r.tensor = 32;
  r.data = 1;
  r.expert = 32;
  r.expert_tensor = 1;
  r.concurrency = 100;
  EXPECT_EQ(layout_of(r, 72, true).tensor, 32);
  EXPECT_EQ(layout_of(r, 72, true).instances, 1);
}

TEST(Silicon, LayoutOfExpertsThatSpreadFurther) {
  SiliconRow r = read_silicon(kHeader + row("x_c5_tp1_epnone_1", "m", 5, 1, 1), "x")[0];
  r.expert_tensor = 4;
  EXPECT_EQ(layout_of(r, 8, true).tensor, 1);
  EXPECT_EQ(layout_of(r, 8, true).data, 4);
  r.id = "cfg1";
  r.tensor = r.data = 4;  // four devices, of which each has its own requests
  r.expert_tensor = 1;
  r.expert = 16;
  EXPECT_EQ(layout_of(r, 8, true).tensor, 1);
  EXPECT_EQ(layout_of(r, 8, true).data, 4);
  EXPECT_EQ(layout_of(r, 8, true).expert, 4);
}

TEST(Silicon, ReadsWhatSpreadsheetsAndOtherToolsWrite) {
  const std::string csv =
      "\xEF\xBB\xBFosl,isl,mode,backend,system,model_path,id,precision\r\n"
      "1024,\"1024\",agg,TensorRT-LLM,h200_sxm,\"openai/gpt-oss-120b\",a_c16_1,NVFP4\r\n";
  const std::vector<SiliconRow> rows = read_silicon(csv, "x");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].id, "a_c16_1");
  EXPECT_EQ(rows[0].engine, "trtllm");
  EXPECT_EQ(rows[0].precision, "fp4");
  EXPECT_EQ(rows[0].concurrency, 16);
  std::string why;
  EXPECT_GT(SiliconCosts().of(rows[0], why)->predict(shipped_calibration()).tpot_ms, 0) << why;
}

SiliconPrediction predicted(const std::string& model, int concurrency, int tensor) {
  const SiliconRow r = read_silicon(kHeader + row("a", model, concurrency, tensor, 1), "x")[0];
  std::string why;
  std::optional<SiliconCost> cost = SiliconCosts().of(r, why);
  EXPECT_TRUE(cost) << why;
  return cost->predict(shipped_calibration());
}

TEST(Silicon, PredictsWhatMoreDevicesAndMoreUsersDo) {
  const double one = predicted("meta-llama/Llama-3.1-70B", 4, 2).tpot_ms;
  EXPECT_GT(one, 8);  // 35 GB per device at 4.8 TB/s
  EXPECT_LT(one, 40);
  EXPECT_LT(predicted("meta-llama/Llama-3.1-70B", 4, 8).tpot_ms, one);
  EXPECT_GT(predicted("meta-llama/Llama-3.1-70B", 64, 2).tpot_ms, one);
  EXPECT_GT(predicted("meta-llama/Llama-3.1-70B", 4, 2).ttft_ms, 0);
}

TEST(Silicon, NoFirstTokenTimeNearSaturation) {
  const SiliconPrediction full = predicted("meta-llama/Llama-3.1-70B", 512, 1);
  EXPECT_GT(full.load, 0.8);
  EXPECT_EQ(full.ttft_ms, 0);
  EXPECT_GT(full.tpot_ms, 0);
}

TEST(Silicon, WhoHasNoRoomWaitsInsteadOfDecoding) {
  const double full = predicted("meta-llama/Llama-3.1-70B", 1024, 1).tpot_ms;
  EXPECT_NEAR(predicted("meta-llama/Llama-3.1-70B", 4096, 1).tpot_ms, full, 1e-6 * full);
}

TEST(Silicon, LayoutThatCannotHoldTheWeightsIsRaised) {
  // 235 GB in 8 bits need two devices of 141 GB.
  EXPECT_LT(predicted("Qwen/Qwen3-235B-A22B-FP8", 4, 1).load, 0.5);
  EXPECT_GT(predicted("Qwen/Qwen3-235B-A22B-FP8", 4, 1).ttft_ms, 0);
}

TEST(Silicon, OthersPromptsSlowShortAnswersMost) {
  SiliconRow r = read_silicon(kHeader + row("a", "meta-llama/Llama-3.1-70B", 64, 8, 1), "x")[0];
  std::string why;
  const auto tpot = [&] {
    return SiliconCosts().of(r, why)->predict(shipped_calibration()).tpot_ms;
  };
  const double long_answer = tpot();
  r.output = 64;
  const double short_answer = tpot();
  EXPECT_GT(short_answer, 1.5 * long_answer);
  r.disaggregated = true;  // prompts are computed elsewhere
  EXPECT_LT(tpot(), long_answer);
}

/// First-token time of a row that `change` has changed.
template <typename Change>
double first_token_ms(Change change) {
  SiliconRow r = read_silicon(kHeader + row("a", "meta-llama/Llama-3.1-70B", 8, 8, 1), "x")[0];
  change(r);
  std::string why;
  return SiliconCosts().of(r, why)->predict(shipped_calibration()).ttft_ms;
}

TEST(Silicon, OnlyTheFirstRoundQueuesUnlessLengthsAreEqual) {
  const auto at = [](double users, bool equal_lengths, bool is_short) {
    return first_token_ms([&](SiliconRow& r) {
      r.prompt = is_short ? 1024 : 8192;
      r.output = is_short ? 1024 : 8192;
      r.concurrency = users;
      r.equal_lengths = equal_lengths;
    });
  };
  // A tenth of the requests waits for half of 15 others: 75 % more than a prompt takes.
  EXPECT_NEAR(at(16, false, false) / at(1, false, false), 1.75, 0.15);
  EXPECT_GT(at(16, true, false), 1.2 * at(16, false, false));
  EXPECT_LT(at(16, true, false), 9 * at(1, true, false));
}

TEST(Silicon, FilesOfAiconfiguratorsOwnRunsAskForEqualLengths) {
  const std::string own =
      "a,source_file=data/h200/rows.csv; silicon_concurrency=8,vllm,1,m,h200_sxm,"
      "fp8,agg,1024,1024,8,8,1,1,8,1,,,,1,1\n";
  const std::vector<SiliconRow> rows = read_silicon(kHeader + own + row("b", "m", 8, 8, 1), "x");
  EXPECT_TRUE(rows[0].equal_lengths);
  EXPECT_FALSE(rows[1].equal_lengths);
}

TEST(Silicon, RecipesThatCollectRequestsDelayThem) {
  const auto sglang = [](const char* system, double users, bool equal_lengths) {
    return first_token_ms([&](SiliconRow& r) {
      r.engine = "sglang";
      r.system = system;
      r.concurrency = users;
      r.equal_lengths = equal_lengths;
    });
  };
  // From 16 users on, ten steps more; not on GPUs without arithmetic of 4 bits.
  const double jump = sglang("b200_sxm", 16, false) - sglang("b200_sxm", 15, false);
  EXPECT_GT(jump, 10 * 5);
  EXPECT_LT(sglang("h200_sxm", 16, false) - sglang("h200_sxm", 15, false), jump / 4);
  EXPECT_LT(sglang("b200_sxm", 16, true) - sglang("b200_sxm", 15, true), jump / 2);
  const auto trtllm = [](int tensor) {
    return first_token_ms([&](SiliconRow& r) {
      r.engine = "trtllm";
      r.tensor = tensor;
    });
  };
  EXPECT_GT(trtllm(4), 2 * trtllm(8));
}

TEST(Silicon, UnknownEnginesGetTheMeanOfTheKnown) {
  const Calibration& c = shipped_calibration();
  double low = 1e9, high = 0;
  for (const char* engine : {"trtllm", "sglang", "vllm"}) {
    low = std::min(low, c.by_engine(kBlockTrtllm, engine));
    high = std::max(high, c.by_engine(kBlockTrtllm, engine));
  }
  EXPECT_GT(c.by_engine(kBlockTrtllm, "lmdeploy"), low);
  EXPECT_LT(c.by_engine(kBlockTrtllm, "lmdeploy"), high);
}

TEST(Silicon, SaysWhyNothingIsPredicted) {
  std::string why;
  const std::vector<SiliconRow> rows =
      read_silicon(kHeader + row("a", "nobody/Unheard-Of", 4, 8, 1), "x");
  EXPECT_FALSE(SiliconCosts().of(rows[0], why));
  EXPECT_EQ(why, "model is not in the catalogue");
  SiliconRow odd = read_silicon(kHeader + row("a", "meta-llama/Llama-3.1-70B", 4, 8, 1), "x")[0];
  odd.precision = "posit16";
  EXPECT_FALSE(SiliconCosts().of(odd, why));
  EXPECT_EQ(why, "precision is not known");
}

TEST(Silicon, RowsThatShareACostArePredictedAsIfAlone) {
  SiliconCosts shared;
  const Calibration constants[] = {shipped_calibration(), uncalibrated()};
  for (int i = 0; i < 12; ++i) {
    const SiliconRow r = read_silicon(
        kHeader + row("a", i % 3 == 0 ? "openai/gpt-oss-120b" : "meta-llama/Llama-3.1-70B",
                      1 << (i / 2), i % 4 < 2 ? 8 : 4, 1),
        "x")[0];
    std::string why;
    const SiliconPrediction a = shared.of(r, why)->predict(constants[i % 2]);
    const SiliconPrediction b = SiliconCosts().of(r, why)->predict(constants[i % 2]);
    EXPECT_EQ(a.tpot_ms, b.tpot_ms);
    EXPECT_EQ(a.ttft_ms, b.ttft_ms);
    EXPECT_EQ(a.load, b.load);
  }
}

TEST(Silicon, WrongFilesNameLineAndColumn) {
  const auto fault = [](const std::string& csv) -> std::string {
    try {
      read_silicon(csv, "rows.csv");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(fault("id,mode\n").find("column model_path"), std::string::npos);
  EXPECT_NE(fault(std::string(kHeader) + "\"a,b\n").find("line 2: a quote is not closed"),
            std::string::npos);
  const std::string bad = kHeader + row("a", "m", 4, 8, 1) + row("b", "m", 4, -8, 1);
  EXPECT_NE(fault(bad).find("line 3: tp_size"), std::string::npos);
  EXPECT_NE(fault(kHeader + row("a", "m", 4, 8, std::nan(""))).find("silicon_tpot_ms"),
            std::string::npos);
}

TEST(Fit, RepeatsCountOnce) {
  const std::string csv = kHeader + row("a", "meta-llama/Llama-3.1-70B", 4, 8, 10) +
                          row("b", "meta-llama/Llama-3.1-70B", 4, 8, 10.5) +
                          row("c", "meta-llama/Llama-3.1-70B", 8, 8, 11);
  const std::vector<SiliconPoint> points = merge_repeats(read_silicon(csv, "x"));
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].ids.size() + points[1].ids.size(), 3u);
}

TEST(Fit, FindsTheConstantsThatMadeTheRows) {
  // Rows whose times are predictions with other constants.
  Calibration truth = uncalibrated();
  truth.values[kMemory] = 0.6;
  truth.values[kBlockVllm] = 40;
  std::vector<SiliconRow> rows;
  for (const char* model : {"meta-llama/Llama-3.1-70B", "meta-llama/Llama-3.1-8B-Instruct"}) {
    for (int concurrency : {1, 4, 16, 64}) {
      for (int tensor : {2, 4, 8}) {
        rows.push_back(read_silicon(kHeader + row("a", model, concurrency, tensor, 1), "x")[0]);
        std::string why;
        const SiliconPrediction p = SiliconCosts().of(rows.back(), why)->predict(truth);
        rows.back().tpot_ms = p.tpot_ms;
        rows.back().ttft_ms = p.ttft_ms;
      }
    }
  }
  FitInput input = fit_input(merge_repeats(rows), 64);
  ASSERT_EQ(input.points.size(), rows.size());
  const Calibration fitted =
      fit_calibration(input, std::vector<bool>(input.points.size(), true), uncalibrated());
  EXPECT_NEAR(fitted.values[kMemory], 0.6, 0.06);
  std::vector<double> errors;
  for (size_t i = 0; i < input.points.size(); ++i) {
    errors.push_back(input.costs[i].predict(fitted).tpot_ms / input.points[i].row.tpot_ms - 1);
  }
  EXPECT_LT(statistics_of(errors).mean_absolute, 2);
}

TEST(Fit, StatisticsOfErrors) {
  const ErrorStatistics s = statistics_of({0.1, -0.3, 0.2});
  EXPECT_EQ(s.n, 3);
  EXPECT_NEAR(s.mean_absolute, 20, 1e-9);
  EXPECT_NEAR(s.bias, 0, 1e-9);
  EXPECT_NEAR(s.median_absolute, 20, 1e-9);
  EXPECT_NEAR(s.worst, 30, 1e-9);
}

TEST(Wafer, LawWithinItsErrorOfWhatItHasNotSeen) {
  double sum = 0;
  const std::vector<WaferError> errors = wafer_leave_one_out();
  for (const WaferError& e : errors) sum += std::abs(e.predicted / e.point.tokens_per_s - 1);
  EXPECT_LE(sum / double(errors.size()), 0.35);
}

TEST(Wafer, TheProfileHasTheLaw) {
  const WaferLaw law = fit_wafer(wafer_points());
  const Hardware hardware = *find_hardware("CS-3");
  EXPECT_NEAR(hardware.find("layer_latency")->value * 1e6, law.layer_us, 0.01);
  EXPECT_NEAR(hardware.find("token_latency")->value * 1e6, law.fixed_us, 0.1);
}

}  // namespace
}  // namespace sluice
