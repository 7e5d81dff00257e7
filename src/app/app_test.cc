#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "app/answer.h"
#include "app/cli.h"
#include "app/model_bytes.h"
#include "app/report.h"
#include "base/error.h"

namespace sluice {
namespace {

const std::filesystem::path kGolden = SLUICE_GOLDEN_DIR;

TEST(ClosestName, FindsTypingMistakes) {
  const std::vector<std::string> names = {"--threads", "--stages", "--max-tokens", "--json"};
  EXPECT_EQ(closest_name("--thread", names), "--threads");
  EXPECT_EQ(closest_name("--tsages", names), "--stages");
  EXPECT_EQ(closest_name("--max-token", names), "--max-tokens");
  EXPECT_EQ(closest_name("--max", names), "--max-tokens");
  EXPECT_EQ(closest_name("--colour-scheme", names), "");
}

TEST(ParseIntegers, TakesListsOnly) {
  EXPECT_EQ(parse_integers("1,2, 3", "--tokens"), (std::vector<int32_t>{1, 2, 3}));
  for (const char* wrong : {"", "1,", ",1", "1;2", "-1", "1.5", "2147483648", "one"}) {
    EXPECT_THROW(parse_integers(wrong, "--tokens"), UsageError) << wrong;
  }
}

/// The message of the UsageError; empty if the flags are right.
std::string fault(std::vector<std::string> words) {
  CLI::App app;
  int count = 1;
  float share = 0;
  std::string mode = "a";
  set_help(app, "test", "[flags]", "A test.", {});
  add_integer(app, "--count", count, 1, 10, "a number");
  add_number(app, "--share", share, 0, 1, "a share");
  add_choice(app, "--mode", mode, {"a", "b"}, "a mode");
  words.insert(words.begin(), "test");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  try {
    EXPECT_TRUE(parse_flags(app, int(words.size()), argv.data()));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Flags, SayWhatWasExpected) {
  EXPECT_EQ(fault({"--count", "3", "--share", "0.5", "--mode=b"}), "");
  EXPECT_EQ(fault({"--count", "11"}), "--count: expected a whole number from 1 to 10, got \"11\"");
  EXPECT_EQ(fault({"--count", "3x"}), "--count: expected a whole number from 1 to 10, got \"3x\"");
  EXPECT_EQ(fault({"--share", "nan"}), "--share: expected a number from 0 to 1, got \"nan\"");
  EXPECT_EQ(fault({"--mode", "c"}), "--mode: expected a or b, got \"c\"");
  EXPECT_EQ(fault({"--cuont", "3"}), "--cuont: unknown flag; did you mean --count?");
  EXPECT_EQ(fault({"loose"}), "loose: unexpected argument (quote a text of several words)");
}

/// What a filter shows for a text that comes in these pieces.
std::string shown(std::vector<std::string> stops, const std::vector<std::string>& pieces) {
  StopFilter filter(std::move(stops));
  std::string text;
  for (const std::string& piece : pieces) text += filter.push(piece);
  return text + filter.finish();
}

TEST(StopFilter, CutsBeforeTheFirstStop) {
  EXPECT_EQ(shown({}, {"one", " two"}), "one two");
  EXPECT_EQ(shown({"END"}, {"a E", "N", "D b"}), "a ");
  EXPECT_EQ(shown({"END"}, {"a E", "N", "E b"}), "a ENE b");
  EXPECT_EQ(shown({"END"}, {"a EN"}), "a EN");
  EXPECT_EQ(shown({"aab"}, {"a", "a", "a", "b", "c"}), "a");
  EXPECT_EQ(shown({"xyz", "y"}, {"wx", "y"}), "wx");
  EXPECT_EQ(shown({""}, {"a"}), "a");
}

TEST(StopFilter, HoldsBackOnlyWhatMayStop) {
  StopFilter filter({"\n\n"});
  EXPECT_EQ(filter.push("line\n"), "line");
  EXPECT_EQ(filter.push("next"), "\nnext");
  EXPECT_FALSE(filter.stopped());
  EXPECT_EQ(filter.push("\n\nmore"), "");
  EXPECT_TRUE(filter.stopped());
}

TEST(ModelBytes, CountsATiedMatrixOnce) {
  const auto checkpoint = open_checkpoint(kGolden / "llama-tied");
  const auto model = make_model(*checkpoint);
  const ModelBytes bytes = count_bytes(*model, *checkpoint);
  EXPECT_EQ(bytes.blocks.size(), model->blocks.size());
  int64_t blocks = 0;
  for (PlacedBlock& placed : model->blocks) {
    blocks += packed_weight_bytes(*placed.block, placed.prefix, *checkpoint);
  }
  const int64_t norm = model->dim * 4;
  EXPECT_EQ(bytes.total(), blocks + bytes.embedding.total());
  EXPECT_EQ(bytes.read_by(1), double(blocks + bytes.embedding.total() + norm));
}

TEST(ModelBytes, ReadsOnlyChosenExperts) {
  const auto checkpoint = open_checkpoint(kGolden / "qwen3-moe");
  const auto model = make_model(*checkpoint);
  const ModelBytes bytes = count_bytes(*model, *checkpoint);
  const PartBytes& experts = bytes.blocks[1];
  ASSERT_GT(experts.n_experts, experts.n_active);
  const double share = double(experts.n_active) / experts.n_experts;
  EXPECT_DOUBLE_EQ(experts.read_by(1), double(experts.dense) + share * double(experts.experts));
  EXPECT_GT(experts.read_by(2), experts.read_by(1));
  EXPECT_LE(experts.read_by(1000), double(experts.total()));
}

TEST(Report, RoundsForPeople) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(bytes_text(200.0 * (1 << 20)), "200 MiB");
  EXPECT_EQ(short_number(1234.5), "1234");
  EXPECT_EQ(short_number(12.34), "12.3");
  EXPECT_EQ(short_number(0.12345), "0.123");
}

}  // namespace
}  // namespace sluice
