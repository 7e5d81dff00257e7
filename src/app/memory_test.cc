#include <gtest/gtest.h>

#include <cmath>

#include "app/cli.h"
#include "app/commands.h"
#include "app/model_bytes.h"
#include "base/error.h"
#include "base/json.h"

namespace sluice {
namespace {

std::string run_memory(std::vector<std::string> words) {
  words.insert(words.begin(), "memory");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  testing::internal::CaptureStdout();
  int code = kFailed;
  try {
    code = memory_command(int(words.size()), argv.data());
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  std::fflush(stdout);
  EXPECT_EQ(code, kOk);
  return testing::internal::GetCapturedStdout();
}

Json memory_json(std::vector<std::string> words) {
  words.push_back("--json");
  return parse_json(run_memory(std::move(words)), "memory");
}

TEST(MemoryCommand, PricesACatalogueModel) {
  const Json json = memory_json({"deepseek-v4-pro", "--context", "1048576", "--users", "2",
                                 "--weights", "8bit", "--by-layer"});
  const int64_t state = 61 * 128 * 512 * 2;  // windows, 16 bit
  EXPECT_EQ(json["cache_bytes_per_token"], 9848);
  EXPECT_EQ(json["state_bytes_per_sequence"], state);
  EXPECT_EQ(json["cache_bytes"], 2 * (9848 * int64_t{1048576} + state));
  EXPECT_EQ(json["total_bytes"],
            json["weights_bytes"].get<int64_t>() + json["cache_bytes"].get<int64_t>());
  EXPECT_NEAR(json["weights_bytes"].get<double>() / 1.58e12, 1, 0.01);
  int64_t by_layer = 0;
  for (const Json& kind : json["by_layer"]) by_layer += kind["cache_bytes"].get<int64_t>();
  EXPECT_EQ(2 * by_layer, json["cache_bytes"]);
}

TEST(MemoryCommand, CountsTheBytesTheEngineAllocates) {
  const std::filesystem::path folder = std::filesystem::path(SLUICE_GOLDEN_DIR) / "llama";
  const Json json = memory_json({folder.string(), "--context", "64"});
  const std::unique_ptr<Checkpoint> checkpoint = open_checkpoint(folder);
  const std::unique_ptr<Model> model = make_model(*checkpoint);
  EXPECT_EQ(json["weights_bytes"], count_bytes(*model, *checkpoint).total());
  EXPECT_EQ(json["weights_format"], "as the engine keeps them");
  EXPECT_EQ(json["cache_bytes"], int64_t(cache_read_bytes(*model, 64, true)));
}

TEST(MemoryCommand, CountsDevices) {
  const Json json = memory_json({"Kimi-K3", "--weights", "4bit", "--on", "wse-3"});
  EXPECT_EQ(json["on"]["hardware"], "CS-3");
  const double per_device = 44e9 * 0.8;
  EXPECT_EQ(json["on"]["devices"],
            int64_t(std::ceil(json["total_bytes"].get<double>() / per_device)));
  EXPECT_EQ(json["on"]["inputs"][1]["kind"], "assumed");
  const std::string text = run_memory({"Kimi-K3", "--on", "CS-3"});
  EXPECT_NE(text.find("usable_memory, assumed"), std::string::npos);
  EXPECT_NE(text.find("Not counted: weights of the attention residuals"), std::string::npos);
}

std::string fault(std::vector<std::string> words) {
  try {
    run_memory(std::move(words));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(MemoryCommand, HelpsWithNames) {
  EXPECT_NE(fault({"DeepSeek-V4-Por"}).find("did you mean DeepSeek-V4-Pro?"), std::string::npos);
  EXPECT_NE(fault({"Kimi-K3", "--on", "H20"}).find("did you mean H200?"), std::string::npos);
  EXPECT_NE(fault({"Kimi-K3", "--users", "0"}).find("--users"), std::string::npos);
  EXPECT_NE(fault({"Kimi-K3", "--weights", "3bit"}).find("--weights"), std::string::npos);
  EXPECT_NE(fault({}).find("MODEL"), std::string::npos);
}

}  // namespace
}  // namespace sluice
