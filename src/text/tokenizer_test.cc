// Behaviour that the recorded cases do not show: options, errors, limits, speed.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "text/detokenizer.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int32_t>;

fs::path golden(const std::string& name) {
  return fs::path(SLUICE_GOLDEN_DIR) / "tokenizers" / name;
}

/// A character BPE with the tokens a, b, ab, aba and what `more` adds or replaces.
std::unique_ptr<Tokenizer> small(const std::string& more = "{}", const std::string& model = "{}") {
  Json root = Json::parse(R"({"model": {"type": "BPE",
      "vocab": {"a": 0, "b": 1, "ab": 2, "aba": 3, " ": 4, "?": 5},
      "merges": ["a b", ["ab", "a"]]}, "decoder": {"type": "Fuse"}})");
  root.merge_patch(Json::parse(more));
  root["model"].merge_patch(Json::parse(model));
  return Tokenizer::from_json(root.dump(), "t.json");
}

std::string error_of(const std::string& text) {
  try {
    Tokenizer::from_json(text, "t.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Processor time, which a busy machine does not stretch.
template <typename F>
double seconds(F&& f) {
  const std::clock_t start = std::clock();
  f();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

TEST(Tokenizer, MergesByRankThenFromTheLeft) {
  const auto t = small();
  EXPECT_EQ(t->encode("abab"), (Ids{2, 2}));
  EXPECT_EQ(t->encode("aba"), (Ids{3}));
  EXPECT_EQ(t->encode("aab a"), (Ids{0, 2, 4, 0}));
}

TEST(Tokenizer, LongAndShortPiecesMergeAlike) {
  const auto t = small();
  std::string text;
  Ids wanted;
  for (int i = 0; i < 200; ++i) {
    text += "aba b";
    const Ids part = t->encode("aba b");
    wanted.insert(wanted.end(), part.begin(), part.end());
    text += "?";
    wanted.push_back(5);
    EXPECT_EQ(t->encode(text), wanted) << i;
  }
}

TEST(Tokenizer, UnknownCharactersVanishFuseOrStandAlone) {
  EXPECT_EQ(small()->encode("axxb"), (Ids{2}));
  EXPECT_EQ(small("{}", R"({"unk_token": "?"})")->encode("axxb"), (Ids{0, 5, 5, 1}));
  EXPECT_EQ(small("{}", R"({"unk_token": "?", "fuse_unk": true})")->encode("axxb"), (Ids{0, 5, 1}));
}

TEST(Tokenizer, AddedTokensFollowTheirFlags) {
  const auto with = [](const std::string& flags) {
    return small(R"({"added_tokens": [{"id": 6, "content": "b", "normalized": false, )" + flags +
                 "}]}");
  };
  EXPECT_EQ(with(R"("special": false)")->encode("ab a"), (Ids{0, 6, 4, 0}));
  EXPECT_EQ(with(R"("rstrip": true)")->encode("ab  a"), (Ids{0, 6, 0}));
  EXPECT_EQ(with(R"("lstrip": true)")->encode("a  b a"), (Ids{0, 6, 4, 0}));
  EXPECT_EQ(with(R"("single_word": true)")->encode("ab b"), (Ids{2, 4, 6}));
  EXPECT_EQ(with(R"("special": true)")->encode("ab", true, false), (Ids{2}));
}

TEST(Tokenizer, SpecialTokensAndEnds) {
  const auto t = Tokenizer::open(golden("o200k"));
  const auto id = [&](std::string_view name) { return t->find(name).value(); };
  EXPECT_TRUE(t->is_special(id("<|return|>")));
  EXPECT_FALSE(t->is_special(0));
  EXPECT_FALSE(t->is_special(-1));
  EXPECT_FALSE(t->is_special(t->vocab_size()));
  EXPECT_TRUE(t->is_end(id("<|return|>")));
  EXPECT_TRUE(t->is_end(id("<|call|>")));
  EXPECT_FALSE(t->is_end(id("<|end|>")));  // ends a message only
  EXPECT_FALSE(t->find("no such token").has_value());

  const auto qwen = Tokenizer::open(golden("qwen2"));
  EXPECT_TRUE(qwen->is_end(qwen->find("<|im_end|>").value()));
  EXPECT_FALSE(qwen->is_end(qwen->find("<|im_start|>").value()));
  const auto llama = Tokenizer::open(golden("llama3"));
  EXPECT_EQ(llama->bos(), llama->find("<|begin_of_text|>"));
}

TEST(Tokenizer, ConfigsBesideTheFileNameTheEnds) {
  const fs::path folder = fs::path(testing::TempDir()) / "sluice_tokenizer_configs";
  fs::create_directories(folder);
  fs::copy_file(golden("llama3") / "tokenizer.json", folder / "tokenizer.json",
                fs::copy_options::overwrite_existing);
  std::ofstream(folder / "tokenizer_config.json") << R"({"eos_token": {"content": "<|eot_id|>"}})";
  std::ofstream(folder / "generation_config.json") << R"({"eos_token_id": [5, 701, 99999]})";
  const auto t = Tokenizer::open(folder);
  EXPECT_EQ(t->eos(), t->find("<|eot_id|>"));
  EXPECT_EQ(Ids(t->end_ids().begin(), t->end_ids().end()), (Ids{5, 701, 702}));
  fs::remove_all(folder);
}

/// The bytes of a text's tokens are the bytes of the text, but for what starts it.
TEST(Tokenizer, TokenBytesMakeUpTheText) {
  const std::string text = "The old café, 漢字 and 😀 stone";
  for (const char* name : {"deepseek", "gpt2", "llama3", "o200k", "kimi-tiktoken", "gemma-bpe",
                           "metaspace-bpe", "spm-bpe", "smollm", "qwen2"}) {
    const auto t = Tokenizer::open(golden(name));
    std::string bytes;
    for (const int32_t id : t->encode(text, false)) bytes += t->token_bytes(id);
    if (bytes.starts_with(' ')) bytes.erase(0, 1);
    EXPECT_EQ(bytes, text) << name;
    EXPECT_EQ(t->token_bytes(-1), "");
    EXPECT_EQ(t->token_bytes(t->vocab_size()), "");
  }
}

TEST(Tokenizer, BrokenUtf8CountsAsReplacementCharacters) {
  const auto t = Tokenizer::open(golden("llama3"));
  EXPECT_EQ(t->encode("a\xE6\xBC"
                      "b\xFF"),
            t->encode("a\xEF\xBF\xBD"
                      "b\xEF\xBF\xBD"));
}

TEST(Tokenizer, IdsOutsideTheVocabularyGiveNoText) {
  const auto t = small();
  EXPECT_EQ(t->decode(Ids{0, -1, 1'000'000, 1}), "ab");
}

TEST(Detokenizer, HoldsUnfinishedCharactersBack) {
  const auto t = Tokenizer::open(golden("gpt2"));
  const Ids ids = t->encode("\xF0\x9F\xA6\x80");  // a crab, which the vocabulary has in bytes
  ASSERT_GT(ids.size(), 1u);
  Detokenizer stream(*t);
  for (size_t i = 0; i + 1 < ids.size(); ++i) EXPECT_EQ(stream.push(ids[i]), "");
  EXPECT_EQ(stream.push(ids.back()), "\xF0\x9F\xA6\x80");
  EXPECT_EQ(stream.push(ids.front()), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
}

TEST(Detokenizer, GoesOnBehindOtherTokens) {
  for (const char* name : {"gpt2", "llama3", "metaspace-bpe", "spm-bpe", "smollm", "wordpiece"}) {
    const auto t = Tokenizer::open(golden(name));
    const Ids ids = t->encode("The old café, 漢字 and 😀 stone or two, and some words more", false);
    for (size_t cut = 1; cut < ids.size(); ++cut) {
      Detokenizer whole(*t), rest(*t);
      for (size_t i = 0; i < cut; ++i) whole.push(ids[i]);
      rest.follow(std::span(ids).first(cut));
      for (size_t i = cut; i < ids.size(); ++i) {
        EXPECT_EQ(rest.push(ids[i]), whole.push(ids[i])) << name << " " << cut << " " << i;
      }
      EXPECT_EQ(rest.finish(), whole.finish());
    }
  }
}

TEST(Tokenizer, LongPiecesTakeLinearithmicTime) {
  const std::string run(100'000, 'a');
  for (const char* name : {"gpt2", "llama3", "o200k", "kimi-tiktoken", "metaspace-bpe", "spm-bpe",
                           "spm-unigram", "unigram", "wordpiece"}) {
    const auto t = Tokenizer::open(golden(name));
    EXPECT_LT(seconds([&] { t->encode(run); }), 1.0) << name;
  }
  std::string marks = "a";
  for (int i = 0; i < 100'000; ++i) marks += i % 2 ? "\xCC\x81" : "\xCC\xA3";  // not in order
  const auto t = Tokenizer::open(golden("qwen2"));
  EXPECT_LT(seconds([&] { t->encode(marks); }), 1.0);
}

TEST(Tokenizer, RunawayPatternsAreErrors) {
  const auto t = small(R"x({"pre_tokenizer": {"type": "Split", "behavior": "Isolated",
                           "pattern": {"Regex": "(a+)+$|(a|a)*c"}}})x");
  EXPECT_THROW(t->encode(std::string(4000, 'a') + "b"), Error);
}

TEST(Tokenizer, ErrorsNameTheField) {
  const auto contains = [](const std::string& json, const std::string& wanted) {
    const std::string error = error_of(json);
    EXPECT_NE(error.find(wanted), std::string::npos) << json << ": " << error;
    EXPECT_EQ(error.find("t.json"), 0u) << error;
  };
  contains("[]", "expected an object");
  contains("{}", "model");
  contains("{", "t.json");
  contains(R"({"model": {"type": "BPE"}})", "model.vocab");
  contains(R"({"model": {"type": "Markov", "vocab": {}}})", "'Markov' is not supported");
  contains(R"({"model": {"type": "BPE", "vocab": {"a": "x"}, "merges": []}})", "expected an id");
  contains(R"({"model": {"type": "BPE", "vocab": {"a": 9999999999}, "merges": []}})", "ids below");
  contains(R"({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}})", "ids below");
  contains(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a z"]}})",
           "model.merges[0]: expected tokens of the vocabulary");
  contains(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]}})",
           "expected a pair of tokens");
  contains(R"({"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 7}})", "unk_id");
  contains(R"({"model": {"type": "BPE", "vocab": {}, "merges": []}, "added_tokens": [{"id": 1}]})",
           "added_tokens[0].content");
  contains(R"({"model": {"type": "BPE", "vocab": {}, "merges": []},
               "added_tokens": [{"id": 2000000000, "content": "x"}]})",
           "ids below");
  contains(R"({"model": {"type": "BPE", "vocab": {}, "merges": []}, "pre_tokenizer":
               {"type": "Split", "behavior": "Isolated", "pattern": {"Regex": "[a"}}})",
           "pattern");
  contains(R"({"model": {"type": "BPE", "vocab": {}, "merges": []}, "normalizer": {"type": "X"}})",
           "'X' is not supported");
  contains(R"({"model": {"type": "BPE", "vocab": {}, "merges": []}, "post_processor":
               {"type": "RobertaProcessing", "sep": ["x", 5], "cls": ["y", 6]}})",
           "id of a token");
}

TEST(Tokenizer, BrokenFilesAreErrors) {
  const fs::path folder = fs::path(testing::TempDir()) / "sluice_broken_tokenizers";
  fs::create_directories(folder);
  const auto open = [&](const char* name, const std::string& bytes) {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    Tokenizer::open(folder / name);
  };
  EXPECT_THROW(Tokenizer::open(folder / "absent.json"), Error);
  EXPECT_THROW(Tokenizer::open(folder), Error);
  EXPECT_THROW(open("a.model", ""), Error);
  EXPECT_THROW(open("b.model", "\x0A\xFF\xFF\xFF\xFF\x0F"), Error);    // a piece of 4 GiB
  EXPECT_THROW(open("c.model", "YQ== 0\nYg== 99999999999\n"), Error);  // a huge rank
  EXPECT_THROW(open("d.model", "YQ== 0\n?? 1\n"), Error);              // not base64
  EXPECT_THROW(open("e.model", "YQ== 0\nYg==\n"), Error);              // no rank
  fs::remove_all(folder);
}

}  // namespace
}  // namespace sluice
