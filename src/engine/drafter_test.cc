#include "engine/drafter.h"

#include <gtest/gtest.h>

#include <random>

namespace sluice {
namespace {

std::vector<Token> propose(const PromptLookup& lookup, int max_draft, double row_cost) {
  std::vector<Token> drafts;
  lookup.propose(max_draft, row_cost, drafts);
  return drafts;
}

std::vector<Token> random_text(uint64_t seed, size_t n, Token vocab) {
  std::mt19937_64 random(seed);
  std::vector<Token> text(n);
  for (Token& token : text) token = static_cast<Token>(random() % static_cast<uint64_t>(vocab));
  return text;
}

/// Decodes `text` after `prompt` with guesses; what it took, in plain steps.
struct Decoded {
  int n_steps = 0, n_drafted = 0, n_accepted = 0;
  double time = 0;
};

Decoded decode(std::span<const Token> prompt, std::span<const Token> text, double cost) {
  PromptLookup lookup;
  lookup.start(prompt);
  Decoded run;
  for (size_t i = 0; i < text.size();) {
    const auto drafts = propose(lookup, 15, cost);
    ++run.n_steps;
    run.n_drafted += static_cast<int>(drafts.size());
    run.time += 1 + cost * static_cast<double>(drafts.size());
    int n_accepted = 0;
    for (Token draft : drafts) {
      if (i == text.size() || draft != text[i]) break;
      lookup.append(text[i++]);
      ++n_accepted;
    }
    if (i < text.size()) lookup.append(text[i++]);  // drawn after the last guess that was right
    run.n_accepted += n_accepted;
    if (!drafts.empty()) lookup.settle(static_cast<int>(drafts.size()), n_accepted, cost);
  }
  return run;
}

TEST(PromptLookup, GuessesWhatFollowedBefore) {
  PromptLookup lookup;
  lookup.start(std::vector<Token>{10, 11, 12, 13, 14, 15, 16, 9, 10, 11, 12});
  EXPECT_EQ(propose(lookup, 3, 0.02), (std::vector<Token>{13, 14, 15}));
  lookup.append(13);
  EXPECT_EQ(propose(lookup, 2, 0.02), (std::vector<Token>{14, 15}));
  lookup.append(99);
  EXPECT_TRUE(propose(lookup, 3, 0.02).empty());
}

TEST(PromptLookup, PrefersTheLongerMatchThenTheLater) {
  PromptLookup lookup;
  lookup.start(std::vector<Token>{7, 1, 2, 3, 50, 8, 1, 2, 3, 60, 9, 1, 2, 3, 70, 7, 1, 2, 3});
  EXPECT_EQ(propose(lookup, 1, 0.02), (std::vector<Token>{50}));
  lookup.start(std::vector<Token>{8, 1, 2, 3, 60, 9, 1, 2, 3, 70, 7, 1, 2, 3});
  EXPECT_EQ(propose(lookup, 1, 0.02), (std::vector<Token>{70}));
}

TEST(PromptLookup, ContinuesAShortPeriodPastTheEnd) {
  PromptLookup lookup;
  lookup.start(std::vector<Token>{1, 2, 1, 2, 1, 2});
  EXPECT_EQ(propose(lookup, 5, 0.02), (std::vector<Token>{1, 2, 1, 2, 1}));
}

TEST(PromptLookup, KnowsNothingOfShortOrNewText) {
  PromptLookup lookup;
  EXPECT_TRUE(propose(lookup, 5, 0.02).empty());
  lookup.start({});
  EXPECT_TRUE(propose(lookup, 5, 0.02).empty());
  for (Token t : {1, 2, 3, 4, 5}) lookup.append(t);
  EXPECT_TRUE(propose(lookup, 5, 0.02).empty());
}

TEST(PromptLookup, FindsTextInALongAnswer) {
  // Beyond the first size of the index, so that it has grown several times.
  const auto text = random_text(1, 3000, 50000);
  PromptLookup lookup;
  lookup.start(std::span(text).first(10));
  for (Token token : std::span(text).subspan(10)) lookup.append(token);
  for (size_t i : {20u, 900u, 2500u}) {
    for (size_t j = 0; j < 3; ++j) lookup.append(text[i + j]);
    const auto drafts = propose(lookup, 2, 0.02);
    ASSERT_EQ(drafts.size(), 2u) << i;
    EXPECT_EQ(drafts[0], text[i + 3]);
    EXPECT_EQ(drafts[1], text[i + 4]);
    lookup.append(49999);
  }
}

TEST(PromptLookup, RepetitiveTextTakesFewSteps) {
  const auto phrase = random_text(2, 60, 1000);
  std::vector<Token> text;
  for (int i = 0; i < 8; ++i) text.insert(text.end(), phrase.begin(), phrase.end());
  const Decoded run = decode(phrase, text, 0.3);
  EXPECT_LT(run.n_steps, static_cast<int>(text.size()) / 5);
  EXPECT_LT(run.time, static_cast<double>(text.size()) / 2);
}

TEST(PromptLookup, NeverLosesMuchOnTextWithNothingToLookUp) {
  for (double cost : {0.05, 0.2, 0.5, 1.0}) {
    for (Token vocab : {2, 4, 8, 30, 1000}) {
      // Small vocabularies match everywhere and predict nothing.
      const auto text = random_text(3 + static_cast<uint64_t>(vocab), 400, vocab);
      const Decoded run = decode(random_text(9, 100, vocab), text, cost);
      EXPECT_LT(run.time, 1.02 * 400) << "cost " << cost << ", vocabulary " << vocab;
    }
  }
}

TEST(PromptLookup, ReturnsWhenTheTextRepeatsAgain) {
  // After long useless text the rates are low; they recover without a single guess being paid for.
  const auto noise = random_text(4, 600, 6);
  const auto phrase = random_text(5, 40, 6);
  std::vector<Token> text = noise;
  for (int i = 0; i < 10; ++i) text.insert(text.end(), phrase.begin(), phrase.end());
  const Decoded run = decode({}, text, 0.2);
  EXPECT_LT(run.time, 0.8 * static_cast<double>(text.size()));
}

TEST(PromptLookup, NoGuessesWhenARowCostsAsMuchAsAToken) {
  const auto phrase = random_text(6, 20, 100);
  std::vector<Token> text;
  for (int i = 0; i < 10; ++i) text.insert(text.end(), phrase.begin(), phrase.end());
  EXPECT_EQ(decode(phrase, text, 1.0).n_drafted, 0);
}

TEST(RowCost, FitsTheSlope) {
  RowCost cost;
  const double before = cost.relative(1);
  EXPECT_GT(before, 0);
  EXPECT_LT(before, 1);
  for (int i = 0; i < 40; ++i) cost.observe(1 + i % 8, 900 + 100 * (1 + i % 8));
  EXPECT_NEAR(cost.relative(1), 0.1, 1e-6);
  // Nine rows take 1,800: one more is worth 100 / (1,800 / 9) of a token.
  EXPECT_NEAR(cost.relative(9), 0.5, 1e-6);
}

TEST(RowCost, FollowsAChangeAndIgnoresNonsense) {
  RowCost cost;
  for (int i = 0; i < 400; ++i) cost.observe(1 + i % 4, 1000 + 10 * (i % 4));
  for (int i = 0; i < 400; ++i) cost.observe(1 + i % 4, 1000 + 500 * (i % 4));
  EXPECT_NEAR(cost.relative(1), 0.5, 0.01);
  cost.observe(3, 0);
  cost.observe(3, -5);
  EXPECT_NEAR(cost.relative(1), 0.5, 0.01);
  RowCost falling;
  for (int i = 0; i < 50; ++i) falling.observe(1 + i % 4, 1000 - 100 * (i % 4));
  EXPECT_GT(falling.relative(2), 0);
  RowCost same;
  for (int i = 0; i < 50; ++i) same.observe(2, 1000);
  EXPECT_EQ(same.relative(1), RowCost().relative(1));
}

}  // namespace
}  // namespace sluice
