// Every recorded case of every vocabulary in tests/golden/tokenizers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> folders() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fs::path(SLUICE_GOLDEN_DIR) / "tokenizers")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Json read_json(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return parse_json(text.str(), path.string());
}

/// The tokenizer of a folder; smollm2 belongs to the default model, which may be absent.
fs::path tokenizer_of(const std::string& name) {
  if (name != "smollm2") return fs::path(SLUICE_GOLDEN_DIR) / "tokenizers" / name;
  return fs::path(SLUICE_GOLDEN_DIR) / "../../models/SmolLM2-135M-Instruct.Q4_1.gguf";
}

class GoldenTokenizer : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const fs::path path = tokenizer_of(GetParam());
    if (!fs::exists(path)) GTEST_SKIP() << path << " is not here";
    tokenizer_ = Tokenizer::open(path);
    cases_ = read_json(fs::path(SLUICE_GOLDEN_DIR) / "tokenizers" / GetParam() / "cases.json");
  }

  std::string streamed(const std::vector<int32_t>& ids, bool skip_special) const {
    Detokenizer stream(*tokenizer_, skip_special);
    std::string text;
    for (const int32_t id : ids) text += stream.push(id);
    return text + stream.finish();
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  Json cases_;
};

using Ids = std::vector<int32_t>;

TEST_P(GoldenTokenizer, EncodesWithoutSpecial) {
  for (const Json& c : cases_["cases"]) {
    const auto text = c["text"].get<std::string>();
    EXPECT_EQ(tokenizer_->encode(text, false), c["ids"].get<Ids>()) << text;
  }
}

TEST_P(GoldenTokenizer, EncodesWithSpecial) {
  for (const Json& c : cases_["cases"]) {
    const auto text = c["text"].get<std::string>();
    const Json& wanted = c.contains("ids_with_special") ? c["ids_with_special"] : c["ids"];
    EXPECT_EQ(tokenizer_->encode(text), wanted.get<Ids>()) << text;
  }
}

TEST_P(GoldenTokenizer, EncodesSpecialsAsText) {
  for (const Json& c : cases_["cases"]) {
    if (!c.contains("ids_specials_as_text")) continue;
    const auto text = c["text"].get<std::string>();
    EXPECT_EQ(tokenizer_->encode(text, false, false), c["ids_specials_as_text"].get<Ids>()) << text;
  }
}

TEST_P(GoldenTokenizer, Decodes) {
  for (const Json& c : cases_["cases"]) {
    const auto ids = c["ids"].get<Ids>();
    const Json& wanted = c.contains("decoded") ? c["decoded"] : c["text"];
    EXPECT_EQ(tokenizer_->decode(ids), wanted.get<std::string>()) << c["text"];
    if (c.contains("decoded_skip_special")) {
      EXPECT_EQ(tokenizer_->decode(ids, true), c["decoded_skip_special"].get<std::string>());
    }
  }
}

TEST_P(GoldenTokenizer, DecodesBrokenCharacters) {
  for (const Json& c : cases_["partial"]) {
    EXPECT_EQ(tokenizer_->decode(c["ids"].get<Ids>()), c["decoded"].get<std::string>()) << c["ids"];
  }
}

/// A stream never emits part of a character, and all of it is what decode() gives for any prefix.
TEST_P(GoldenTokenizer, StreamsWholeCharacters) {
  for (const Json& c : cases_["cases"]) {
    const auto ids = c["ids"].get<Ids>();
    Detokenizer stream(*tokenizer_);
    for (const int32_t id : ids) {
      const std::string text = stream.push(id);
      EXPECT_NO_THROW(Json(text).dump()) << "not valid UTF-8";
    }
    for (const bool skip : {false, true}) {
      EXPECT_EQ(streamed(ids, skip), tokenizer_->decode(ids, skip));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, GoldenTokenizer, testing::ValuesIn(folders()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace sluice
