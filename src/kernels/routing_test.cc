#include "kernels/routing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace sluice {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Chosen {
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

Chosen softmax_first(const std::vector<float>& logits, size_t k, bool renormalise) {
  Chosen chosen{std::vector<int32_t>(k, -1), std::vector<float>(k, -1)};
  route_softmax_then_top_k(logits, renormalise, chosen.experts, chosen.weights);
  return chosen;
}
Chosen top_k_first(const std::vector<float>& logits, size_t k) {
  Chosen chosen{std::vector<int32_t>(k, -1), std::vector<float>(k, -1)};
  route_top_k_then_softmax(logits, chosen.experts, chosen.weights);
  return chosen;
}

const std::vector<float> kLogits = {std::log(1.0f), std::log(4.0f), std::log(2.0f), std::log(8.0f),
                                    std::log(1.0f)};

TEST(Routing, SoftmaxOverAllThenTopK) {
  const Chosen chosen = softmax_first(kLogits, 2, false);
  EXPECT_EQ(chosen.experts, (std::vector<int32_t>{3, 1}));
  EXPECT_FLOAT_EQ(chosen.weights[0], 0.5f);
  EXPECT_FLOAT_EQ(chosen.weights[1], 0.25f);
}

TEST(Routing, Renormalised) {
  const Chosen chosen = softmax_first(kLogits, 2, true);
  EXPECT_EQ(chosen.experts, (std::vector<int32_t>{3, 1}));
  EXPECT_FLOAT_EQ(chosen.weights[0], 2.0f / 3);
  EXPECT_FLOAT_EQ(chosen.weights[1], 1.0f / 3);
}

TEST(Routing, TopKThenSoftmaxOverTheSelected) {
  const Chosen chosen = top_k_first(kLogits, 3);
  EXPECT_EQ(chosen.experts, (std::vector<int32_t>{3, 1, 2}));
  EXPECT_FLOAT_EQ(chosen.weights[0], 8.0f / 14);
  EXPECT_FLOAT_EQ(chosen.weights[1], 4.0f / 14);
  EXPECT_FLOAT_EQ(chosen.weights[2], 2.0f / 14);
}

TEST(Routing, TiesGoToTheLowerIndex) {
  EXPECT_EQ(top_k_first({1, 2, 2, 1, 2}, 2).experts, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(top_k_first({0, 0, 0, 0}, 4).experts, (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(top_k_first({0.0f, -0.0f}, 1).experts, (std::vector<int32_t>{0}));
}

TEST(Routing, LargeLogitsDoNotOverflow) {
  const Chosen chosen = softmax_first({1e30f, -1e30f, 1e30f}, 2, false);
  EXPECT_EQ(chosen.experts, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(chosen.weights, (std::vector<float>{0.5f, 0.5f}));
}

TEST(Routing, NaNRanksLastAndIndicesStayValid) {
  EXPECT_EQ(top_k_first({kNaN, 1, 2}, 2).experts, (std::vector<int32_t>{2, 1}));
  EXPECT_EQ(top_k_first({kNaN, kNaN}, 2).experts, (std::vector<int32_t>{0, 1}));
}

}  // namespace
}  // namespace sluice
