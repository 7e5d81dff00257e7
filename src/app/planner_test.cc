#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "app/cli.h"
#include "app/commands.h"
#include "base/error.h"
#include "base/json.h"

namespace sluice {
namespace {

using Command = int (*)(int, char**);

std::string run(Command command, std::vector<std::string> words) {
  words.insert(words.begin(), "command");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  testing::internal::CaptureStdout();
  try {
    EXPECT_EQ(command(int(words.size()), argv.data()), kOk);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  std::fflush(stdout);
  return testing::internal::GetCapturedStdout();
}

Json json_of(Command command, std::vector<std::string> words) {
  words.push_back("--json");
  return parse_json(run(command, std::move(words)), "output");
}

std::string fault(Command command, std::vector<std::string> words) {
  try {
    run(command, std::move(words));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

size_t widest_line(const std::string& text) {
  size_t widest = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    widest = std::max(widest, end - at);
    at = end + 1;
  }
  return widest;
}

TEST(PlanCommand, PricesAndWritesAPlan) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "sluice-plan.json";
  const Json json = json_of(plan_command, {"Kimi-K3", "--on", "CS-3", "--weights", "4bit",
                                           "--users", "8", "-o", file.string()});
  const Json& best = json["best"];
  EXPECT_TRUE(best["meets_demand"].get<bool>());
  EXPECT_NEAR(best["tokens_per_s"].get<double>(), 8 * best["tokens_per_s_per_user"].get<double>(),
              0.01);
  EXPECT_GT(best["usd_per_mtok"].get<double>(), 0);
  EXPECT_GT(json["estimated_share"].get<double>(), 0);
  EXPECT_EQ(json["error_percent"], 35);
  EXPECT_FALSE(json["sensitivity"].empty());
  EXPECT_FALSE(json["runners_up"][0]["why"].get<std::string>().empty());
  const Json plan = parse_json(read(file), "plan");
  EXPECT_EQ(plan["model"], "Kimi-K3");
  EXPECT_EQ(plan["stages"][0]["hardware"], "CS-3");
  std::filesystem::remove(file);
}

TEST(PlanCommand, PrefillElsewhereSendsTheCache) {
  const Json json = json_of(plan_command, {"DeepSeek-V3", "--on", "CS-3", "--weights", "4bit",
                                           "--prefill-on", "B200", "--context", "96300"});
  EXPECT_EQ(json["prefill"]["cache_bytes"], int64_t{96300} * 70272);
  EXPECT_NEAR(json["prefill"]["transfer_ms"].get<double>(), 45, 1);  // at 150 GB/s
}

TEST(PlanCommand, ImpossibleDemandsSayByHowMuch) {
  const std::string slow =
      fault(plan_command, {"Kimi-K3", "--on", "B200", "--min-speed", "100000"});
  EXPECT_NE(slow.find("no plan of"), std::string::npos);
  EXPECT_NE(slow.find("times too slow"), std::string::npos);
  EXPECT_NE(fault(plan_command, {"Kimi-K3", "--on", "B20O"}).find("did you mean B200?"),
            std::string::npos);
  EXPECT_NE(fault(plan_command, {"Kimi-K4", "--on", "B200"}).find("did you mean Kimi-K3?"),
            std::string::npos);
  EXPECT_NE(fault(plan_command, {"Kimi-K3"}).find("--on"), std::string::npos);
  EXPECT_NE(fault(plan_command, {"Kimi-K3", "--on", "CS-3", "--draft", "magic"}).find("--draft"),
            std::string::npos);
}

TEST(ClaimsCommand, SaysWhyIn80Columns) {
  const std::string text = run(claims_command, {});
  EXPECT_NE(text.find("150b-active: circular"), std::string::npos);
  EXPECT_LE(widest_line(text), 80u);
  const Json json = json_of(claims_command, {SLUICE_GOLDEN_DIR "/plan/claims.json"});
  EXPECT_EQ(json["claims"].size(), 3u);
  EXPECT_EQ(json["claims"][0]["verdict"], "consistent");
}

TEST(PhaseCommand, DrawsContours) {
  const std::filesystem::path folder = testing::TempDir();
  const Json json =
      json_of(phase_command, {"--attention", "gqa", "--svg", (folder / "sluice.svg").string(),
                              "--csv", (folder / "sluice.csv").string()});
  const Json& points = json["points"];
  EXPECT_GT(points.size(), 500u);
  EXPECT_LT(points[0]["devices"].get<double>(), points[points.size() - 1]["devices"].get<double>());
  const std::string svg = read(folder / "sluice.svg");
  EXPECT_NE(svg.find("gqa attention on CS-3"), std::string::npos);
  EXPECT_NE(svg.find("<polyline"), std::string::npos);
  EXPECT_NE(read(folder / "sluice.csv").find("context,parameters,devices"), std::string::npos);
  std::filesystem::remove(folder / "sluice.svg");
  std::filesystem::remove(folder / "sluice.csv");
}

TEST(ValidateCommand, JudgesRowsAndWritesThem) {
  const std::filesystem::path out = std::filesystem::path(testing::TempDir()) / "sluice-rows.csv";
  const Json json = json_of(validate_command, {"--silicon", SLUICE_GOLDEN_DIR "/plan/rows.csv",
                                               "--rows-out", out.string()});
  EXPECT_EQ(json["silicon"]["rows"], 3);
  EXPECT_EQ(json["silicon"]["points_judged"], 2);
  EXPECT_EQ(json["silicon"]["not_predicted"]["model is not in the catalogue"], 1);
  EXPECT_LE(json["wafers"]["leave_one_model_out"]["mean_absolute_percent"].get<double>(), 35);
  for (const Json& row : json["memory"]) {
    EXPECT_LE(std::abs(row["error_percent"].get<double>()), 1);
  }
  const std::string rows = read(out);
  EXPECT_TRUE(
      rows.starts_with("id,concurrency,tpot_measured_ms,tpot_predicted_ms,"
                       "ttft_measured_ms,ttft_predicted_ms\nmade_up_tp8_ep1_1,16,12.0000,"));
  EXPECT_NE(rows.find("made_up_3,,12.0000,,120.0000,\n"), std::string::npos);
  std::filesystem::remove(out);
}

}  // namespace
}  // namespace sluice
