#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace sluice {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> some_logits(size_t n, uint64_t seed, float spread = 3) {
  std::mt19937_64 random(seed);
  std::vector<float> logits(n);
  for (float& l : logits)
    l = spread * static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 1000;
  return logits;
}

SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}

Token draw(std::span<const float> logits, const SamplingParams& params, int position = 1,
           std::span<const Token> history = {}, int n_prompt = 0,
           const std::vector<uint32_t>* mask = nullptr) {
  std::string error;
  static Sampler sampler;  // whatever it did before must not matter
  const Token token = sampler.draw(logits, params, history, n_prompt, mask, position, error);
  EXPECT_EQ(error, "");
  return token;
}

/// How often each token is drawn at positions 0..n-1.
std::map<Token, int> draws(std::span<const float> logits, const SamplingParams& params, int n,
                           const std::vector<uint32_t>* mask = nullptr) {
  std::map<Token, int> counts;
  for (int i = 0; i < n; ++i) ++counts[draw(logits, params, i, {}, 0, mask)];
  return counts;
}

/// The shares that `logits` give at a temperature, computed in double.
std::vector<double> shares(const std::vector<float>& logits, double temperature) {
  std::vector<double> p;
  double total = 0;
  for (float l : logits) total += p.emplace_back(std::exp(static_cast<double>(l) / temperature));
  for (double& x : p) x /= total;
  return p;
}

void expect_distribution(const std::map<Token, int>& counts, const std::vector<double>& wanted,
                         int n) {
  for (size_t t = 0; t < wanted.size(); ++t) {
    const auto found = counts.find(static_cast<Token>(t));
    const double got = found == counts.end() ? 0 : static_cast<double>(found->second) / n;
    // Five standard deviations.
    EXPECT_NEAR(got, wanted[t], 5 * std::sqrt(wanted[t] * (1 - wanted[t]) / n)) << "token " << t;
    EXPECT_TRUE(wanted[t] > 0 || got == 0) << "token " << t;
  }
}

/// `p` with everything outside `kept` removed.
std::vector<double> only(std::vector<double> p, const std::vector<size_t>& kept) {
  double total = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (std::find(kept.begin(), kept.end(), i) == kept.end()) p[i] = 0;
    total += p[i];
  }
  for (double& x : p) x /= total;
  return p;
}

TEST(Uniform, IsSpreadEvenlyAndDependsOnBothArguments) {
  constexpr int kN = 20000;
  std::vector<int> bins(16);
  double sum = 0;
  for (int i = 0; i < kN; ++i) {
    const double u = uniform_at(7, i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    ++bins[static_cast<size_t>(u * 16)];
  }
  EXPECT_NEAR(sum / kN, 0.5, 0.01);
  for (int n : bins) EXPECT_NEAR(n, kN / 16, 5 * std::sqrt(kN / 16));
  EXPECT_NE(uniform_at(7, 1), uniform_at(7, 2));
  EXPECT_NE(uniform_at(7, 1), uniform_at(8, 1));
  EXPECT_NE(uniform_at(1, 2), uniform_at(2, 1));
  EXPECT_EQ(uniform_at(0, 0), uniform_at(0, 0));
}

TEST(Sampler, GreedyTakesTheLargestAndTheLowerIdOnTies) {
  // Sizes around the block and lane widths, the largest at every place.
  for (size_t n : {1u, 31u, 32u, 33u, 63u, 64u, 65u, 130u}) {
    for (size_t at = 0; at < n; ++at) {
      std::vector<float> logits(n, -2);
      logits[at] = 1;
      EXPECT_EQ(draw(logits, greedy()), static_cast<Token>(at));
      logits[n - 1] = 1;
      EXPECT_EQ(draw(logits, greedy()), static_cast<Token>(at));
    }
  }
  const std::vector<float> logits = {-kInf, 2, -kInf};
  EXPECT_EQ(draw(logits, greedy()), 1);
}

TEST(Sampler, DrawsFromTheDistribution) {
  for (float temperature : {0.5f, 1.0f, 2.0f}) {
    const auto logits = some_logits(100, 3);
    SamplingParams params;
    params.temperature = temperature;
    params.seed = 11;
    expect_distribution(draws(logits, params, 40000),
                        shares(logits, static_cast<double>(temperature)), 40000);
  }
}

TEST(Sampler, ADrawDependsOnSeedAndPositionAlone) {
  const auto logits = some_logits(500, 4);
  SamplingParams params;
  params.seed = 5;
  Sampler used;
  std::string error;
  used.draw(some_logits(900, 1), params, {}, 0, nullptr, 3, error);
  for (int i = 0; i < 50; ++i) {
    Sampler fresh;
    EXPECT_EQ(used.draw(logits, params, {}, 0, nullptr, i, error),
              fresh.draw(logits, params, {}, 0, nullptr, i, error));
  }
  const auto first = draws(logits, params, 200);
  params.seed = 6;
  EXPECT_NE(first, draws(logits, params, 200));
}

TEST(Sampler, TopKKeepsTheLargestTiesToTheLowerId) {
  std::vector<float> logits = some_logits(1000, 5);
  for (size_t t : {990u, 20u, 500u, 700u}) logits[t] = 4;
  logits[300] = 5;
  SamplingParams params;
  params.top_k = 3;
  expect_distribution(draws(logits, params, 20000), only(shares(logits, 1), {300, 20, 500}), 20000);
  params.top_k = 1;
  EXPECT_EQ(draws(logits, params, 50).size(), 1u);
  // As many as there are, or more: no filter.
  params.top_k = 1000;
  SamplingParams plain;
  EXPECT_EQ(draws(logits, params, 300), draws(logits, plain, 300));
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.4f), std::log(0.3f),
                                     std::log(0.2f)};
  SamplingParams params;
  params.top_p = 0.69f;  // 0.4 + 0.3
  expect_distribution(draws(logits, params, 20000), only(shares(logits, 1), {1, 2}), 20000);
  params.top_p = 0.71f;
  expect_distribution(draws(logits, params, 20000), only(shares(logits, 1), {1, 2, 3}), 20000);
  params.top_p = 0;
  expect_distribution(draws(logits, params, 100), {0, 1, 0, 0}, 100);
  // After top_k the shares are those of what is left: 0.4 / 0.7 reaches 0.55 alone.
  params.top_k = 2;
  params.top_p = 0.55f;
  expect_distribution(draws(logits, params, 100), {0, 1, 0, 0}, 100);
}

TEST(Sampler, TopPAgreesWithASort) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto logits = some_logits(3000, seed, 6);
    const auto p = shares(logits, 1);
    std::vector<size_t> order(p.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    });
    for (double top_p : {0.3, 0.9}) {
      double sum = 0;
      size_t n = 0;
      while (sum < top_p) sum += p[order[n++]];
      SamplingParams params;
      params.top_p = static_cast<float>(top_p);
      const auto counts = draws(logits, params, 300);
      for (const auto& [token, count] : counts) {
        const auto rank =
            std::find(order.begin(), order.end(), static_cast<size_t>(token)) - order.begin();
        ASSERT_LE(rank, static_cast<std::ptrdiff_t>(n));
      }
    }
  }
}

TEST(Sampler, MinPComparesWithTheLargest) {
  const std::vector<float> logits = {0, std::log(0.51f), std::log(0.49f), std::log(0.1f)};
  SamplingParams params;
  params.min_p = 0.5f;
  expect_distribution(draws(logits, params, 20000), only(shares(logits, 1), {0, 1}), 20000);
  params.min_p = 1;
  expect_distribution(draws(logits, params, 100), {1, 0, 0, 0}, 100);
}

TEST(Sampler, TypicalLeavesOutTheTooLikely) {
  // Entropy 0.5 * ln 2 + 0.5 * ln 20 = 1.844: a share of 0.05 is 1.15 away, as is 0.5, but
  // 0.15 is 0.053 away.
  const std::vector<float> logits = {std::log(0.5f), std::log(0.15f), std::log(0.15f),
                                     std::log(0.15f), std::log(0.05f)};
  SamplingParams params;
  params.typical_p = 0.44f;
  expect_distribution(draws(logits, params, 20000), only(shares(logits, 1), {1, 2, 3}), 20000);
}

TEST(Sampler, PenaltiesAndBias) {
  std::vector<float> logits = {2, 1.9f, -1, 0};
  const std::vector<Token> history = {0, 0, 2, 3, 3, 0};
  SamplingParams params = greedy();
  EXPECT_EQ(draw(logits, params, 6, history, 3), 0);
  params.repetition_penalty = 1.5f;  // 2 / 1.5 < 1.9
  EXPECT_EQ(draw(logits, params, 6, history, 3), 1);
  EXPECT_EQ(draw({{-1, -1.2f}}, params, 1, std::vector<Token>{0}, 1), 1);  // -1 * 1.5 < -1.2
  params = greedy();
  params.presence_penalty = 0.2f;  // token 0 was generated once: 2 - 0.2 < 1.9
  EXPECT_EQ(draw(logits, params, 6, history, 3), 1);
  EXPECT_EQ(draw(logits, params, 6, history, 6), 0);  // all of it is the prompt
  params = greedy();
  params.frequency_penalty = 0.06f;  // 2 - 0.06 > 1.9 > 2 - 0.12
  EXPECT_EQ(draw(logits, params, 6, history, 3), 0);
  EXPECT_EQ(draw(logits, params, 6, history, 1), 1);
  params = greedy();
  params.logit_bias = {{3, 2.5f}, {99, 100}, {-1, 100}};
  EXPECT_EQ(draw(logits, params), 3);
  params.logit_bias = {{0, -kInf}};
  EXPECT_EQ(draw(logits, params), 1);
}

TEST(Sampler, TheMaskDecides) {
  const auto logits = some_logits(70, 8);
  std::vector<uint32_t> mask = {0x80000001, 0, 1u << 3};
  expect_distribution(draws(logits, {}, 20000, &mask), only(shares(logits, 1), {0, 31, 67}), 20000);
  mask = {0, ~0u};  // shorter than the vocabulary: the rest is not allowed
  for (const auto& [token, count] : draws(logits, {}, 500, &mask)) {
    EXPECT_GE(token, 32);
    EXPECT_LT(token, 64);
  }
}

TEST(Sampler, SaysWhyNothingCanBeDrawn) {
  auto error_of = [](std::vector<float> logits, const SamplingParams& params,
                     const std::vector<uint32_t>* mask = nullptr) {
    std::string error;
    EXPECT_EQ(Sampler().draw(logits, params, {}, 0, mask, 0, error), -1);
    return error;
  };
  for (const SamplingParams& params : {greedy(), SamplingParams()}) {
    for (size_t at : {0u, 40u, 99u}) {
      auto logits = some_logits(100, 1);
      logits[at] = NAN;
      EXPECT_EQ(error_of(logits, params), "logits are not finite");
      logits[at] = kInf;
      EXPECT_EQ(error_of(logits, params), "logits are not finite");
      // Also where the mask would hide it: the model is broken all the same.
      const std::vector<uint32_t> mask = {2, 0, 0, 0};
      EXPECT_EQ(error_of(logits, params, &mask), "logits are not finite");
    }
    const std::vector<uint32_t> none = {0, 0, 0, 0};
    EXPECT_EQ(error_of(some_logits(100, 1), params, &none),
              "no token may be sampled: all are masked or biased away");
    EXPECT_EQ(error_of({-kInf, -kInf}, params),
              "no token may be sampled: all are masked or biased away");
  }
}

TEST(Sampler, ExtremeTemperaturesAndLogits) {
  SamplingParams params;
  params.temperature = 1e-4f;
  EXPECT_EQ(draws({{1e30f, -1e30f, 9e29f}}, params, 100).size(), 1u);
  params.temperature = 1e6f;
  EXPECT_EQ(draws({{5, -5, 0, -kInf}}, params, 500).size(), 3u);
  params.top_p = 1e-9f;
  EXPECT_EQ(draws({{5, -5, 0, -kInf}}, params, 500).size(), 1u);
}

TEST(Sampler, LogProbabilitiesAreTheModels) {
  const auto logits = some_logits(777, 9, 8);
  const auto p = shares(logits, 1);
  Batch batch;
  batch.rows.resize(1);
  batch.rows[0] = {.position = 4, .target = 5, .sample = true};
  batch.sequences.resize(1);
  auto params = std::make_shared<SamplingParams>();
  params->n_top_logprobs = 4;
  params->temperature = 0.3f;
  params->logit_bias = {{5, 100}};
  batch.sequences[0].sampling = params;
  const RowResult result = Sampler().run(batch, 0, logits);
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.token, 5);
  EXPECT_NEAR(result.logprob, std::log(p[5]), 2e-6);
  EXPECT_EQ(result.target_logprob, result.logprob);
  ASSERT_EQ(result.top.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const auto token = static_cast<size_t>(result.top[i].token);
    EXPECT_NEAR(result.top[i].logprob, std::log(p[token]), 2e-6);
    const auto n_larger = std::count_if(p.begin(), p.end(), [&](double x) { return x > p[token]; });
    EXPECT_LE(n_larger, static_cast<std::ptrdiff_t>(i));
  }
  batch.rows[0] = {.position = 4, .target = 777};
  EXPECT_EQ(Sampler().run(batch, 0, logits).error, "target: expected a token below 777, got 777");
}

TEST(Sampler, LogProbabilitiesAreAccurate) {
  // Spread so wide that most terms vanish, and so narrow that all count.
  for (float spread : {0.01f, 1.0f, 20.0f, 100.0f}) {
    const auto logits = some_logits(20000, 10, spread);
    const float max = *std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (float l : logits) total += std::exp(static_cast<double>(l - max));
    Batch batch;
    batch.rows.resize(1);
    batch.sequences.resize(1);
    batch.sequences[0].sampling = std::make_shared<SamplingParams>();
    for (Token t : {0, 1, 19999}) {
      batch.rows[0] = {.target = t};
      const double wanted =
          static_cast<double>(logits[static_cast<size_t>(t)] - max) - std::log(total);
      const double got = static_cast<double>(Sampler().run(batch, 0, logits).target_logprob);
      EXPECT_NEAR(got, wanted, 3e-7 * (1 + std::abs(wanted)));
    }
  }
}

}  // namespace
}  // namespace sluice
