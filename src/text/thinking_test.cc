#include "text/thinking.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// Tokens: 0 end, 1 open, 2 close, 3 "a", 4 "b", 5 a line break.
class Answer : public TokenConstraint {  // "b", then the end
 public:
  void allowed(std::vector<uint32_t>& bits) override { bits.assign(1, n_ == 0 ? 1u << 4 : 1u); }
  bool accept(Token token) override {
    if (token != (n_ == 0 ? 4 : 0)) return false;
    ++n_;
    return true;
  }
  void rollback(int n) override { n_ -= n; }

 private:
  int n_ = 0;
};

std::shared_ptr<ThinkingRules> rules(int64_t budget, bool begun) {
  auto result = std::make_shared<ThinkingRules>();
  result->open = {1};
  result->close = {2};
  result->close_text = "</think>";
  result->begun = begun;
  result->budget = budget;
  result->n_words = 1;
  result->end_tokens = {0};
  result->gaps = {5};
  result->vocabulary = std::make_shared<VocabularyTrie>(
      std::vector<std::string>{"", "<think>", "</think>", "a", "b", "\n"}, std::vector<Token>{0});
  return result;
}

uint32_t mask(TokenConstraint& constraint) {
  std::vector<uint32_t> bits;
  constraint.allowed(bits);
  return bits[0] & 0x3F;
}

TEST(Thinking, ComesBeforeTheAnswer) {
  const auto constraint = constrain_after_thinking(rules(-1, false), std::make_unique<Answer>());
  EXPECT_EQ(mask(*constraint), 0b010010u);  // the marker, or the answer
  EXPECT_FALSE(constraint->accept(3));
  EXPECT_TRUE(constraint->accept(1));
  EXPECT_EQ(mask(*constraint), 0b111110u);  // all but the end
  for (const Token token : {3, 4, 1, 2}) EXPECT_TRUE(constraint->accept(token));
  EXPECT_EQ(mask(*constraint), 0b110000u);
  EXPECT_TRUE(constraint->accept(5));
  EXPECT_EQ(mask(*constraint), 0b010000u);
  EXPECT_FALSE(constraint->accept(3));
  EXPECT_TRUE(constraint->accept(4));
  EXPECT_EQ(mask(*constraint), 1u);
  constraint->rollback(3);  // into the thinking
  EXPECT_EQ(mask(*constraint), 0b111110u);
  EXPECT_TRUE(constraint->accept(2));
  EXPECT_TRUE(constraint->accept(4));
  EXPECT_EQ(mask(*constraint), 1u);
}

TEST(Thinking, EndsWithItsBudget) {
  const auto constraint = constrain_after_thinking(rules(2, true), nullptr);
  EXPECT_TRUE(constraint->accept(3));
  EXPECT_EQ(mask(*constraint), 0b111110u);
  EXPECT_TRUE(constraint->accept(3));
  EXPECT_EQ(mask(*constraint), 0b000100u);
  EXPECT_FALSE(constraint->accept(3));
  EXPECT_TRUE(constraint->accept(2));
  EXPECT_TRUE(constraint->accept(3));
  EXPECT_EQ(mask(*constraint), 0b111111u);
}

TEST(Thinking, WithoutBudgetIsNotBegun) {
  const auto constraint = constrain_after_thinking(rules(0, false), nullptr);
  EXPECT_EQ(mask(*constraint), 0b111101u);
  EXPECT_TRUE(constraint->accept(3));
}

TEST(Thinking, FindsMarkersOfSeveralTokens) {
  auto several = rules(1, true);
  several->close = {3, 4};
  several->close_text = "ab";
  const auto constraint = constrain_after_thinking(several, std::make_unique<Answer>());
  EXPECT_TRUE(constraint->accept(4));
  EXPECT_EQ(mask(*constraint), 0b001000u);
  EXPECT_TRUE(constraint->accept(3));
  EXPECT_EQ(mask(*constraint), 0b010000u);
  EXPECT_TRUE(constraint->accept(4));
  EXPECT_EQ(mask(*constraint), 0b110000u);
}

}  // namespace
}  // namespace sluice
