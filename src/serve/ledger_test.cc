#include "serve/ledger.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/error.h"

namespace sluice {
namespace {

LedgerEntry entry(int number, const char* key, const char* tier) {
  LedgerEntry entry;
  entry.id = "req_" + std::to_string(number);
  entry.ended_ms = 86'400'000LL * number;
  entry.key = key;
  entry.model = "tiny";
  entry.service_tier = tier;
  entry.usage.prompt_tokens = 100;
  entry.usage.cached_tokens = 60;
  entry.usage.completion_tokens = 10;
  entry.cost = 0.1;
  return entry;
}

TEST(Ledger, CountsEveryRequestOnce) {
  const std::string path = std::filesystem::temp_directory_path() / "sluice-ledger-test.db";
  const auto remove = [&] {
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
  };
  remove();
  for (int round = 0; round < 2; ++round) {  // the second time it is opened nothing is new
    Ledger ledger(path);
    for (int i = 0; i < 10; ++i)
      ledger.add(entry(i, i < 3 ? "ann" : "", i < 5 ? "flex" : "default"));
  }
  const OrderedJson keys = usage_by(path, "key");
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0].dump(), R"({"key":"","requests":7,"prompt_tokens":700,"cached_tokens":420,)"
                            R"("completion_tokens":70,"cost":0.7})");
  EXPECT_EQ(keys[1]["key"], "ann");
  EXPECT_EQ(usage_by(path, "tier")[1]["tier"], "flex");
  EXPECT_EQ(usage_by(path, "model")[0]["requests"], 10);
  const OrderedJson days = usage_by(path, "day");
  EXPECT_EQ(days.size(), 10u);
  EXPECT_EQ(days[9]["day"], "1970-01-10");
  remove();
  EXPECT_THROW(usage_by(path, "key"), Error);
}

}  // namespace
}  // namespace sluice
