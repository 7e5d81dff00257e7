// Draws a token from one row of logits. A pure function of the logits, the sampling parameters, the
// tokens so far, the mask and the position, so an answer never depends on who shares its batch.
//
// In this order:
//  1. logit_bias is added.
//  2. repetition_penalty r: for each distinct token so far, l = l > 0 ? l / r : l * r (Keskar et
//     al. 2019, arXiv:1909.05858, section 4.1).
//  3. presence and frequency: l -= presence + frequency * count for each generated token (OpenAI
//  API
//     reference, chat completions).
//  4. Tokens outside the mask are removed.
//  5. temperature < 1e-5: the largest logit, ties to the lower id. Otherwise weights
//     w = exp((l - max) / temperature).
//  6. top_k: the k largest, ties to the lower id.
//  7. top_p: of those, the fewest largest whose share reaches p (Holtzman et al. 2019,
//     arXiv:1904.09751).
//  8. min_p: those with w >= min_p * largest w (Nguyen et al. 2024, arXiv:2407.01082).
//  9. typical_p: with shares renormalised and H their entropy, the fewest with the smallest
//     |-log(share) - H| whose share reaches p (Meister et al. 2022, arXiv:2202.00666).
// 10. The token at which the running sum of w first exceeds u * (sum of w), where u in [0, 1) is
//     SplitMix64 (Steele, Lea, Flood 2014) of seed and position.
// Log-probabilities are those of the model: the log-softmax of the logits before step 1.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/request.h"

namespace sluice {

/// Uniform in [0, 1), a function of its arguments alone.
double uniform_at(uint64_t seed, int64_t position);

class Sampler {
 public:
  /// What batch.rows[row] asks for (sample, target), from its `logits`, (vocab). Never throws:
  /// RowResult::error says if the logits are not finite (NaN or +inf), nothing is left to draw
  /// from, or the target is no token. -inf is a logit that is never drawn.
  RowResult run(const Batch& batch, int row, std::span<const float> logits);

  /// The token alone. `position` is that of the new token; `history` the tokens before it, of which
  /// n_prompt are the prompt; `mask` may be null. Returns -1 and sets `error` as above.
  Token draw(std::span<const float> logits, const SamplingParams& params,
             std::span<const Token> history, int n_prompt, const std::vector<uint32_t>* mask,
             int position, std::string& error);

 private:
  struct Candidate {
    float value = 0;  // weight, or logit
    Token token = 0;
    uint32_t key = 0;  // what keep_mass() goes by
  };

  void adjust(const SamplingParams& params, std::span<const Token> history, int n_prompt);
  Token draw_weighted(std::span<const float> logits, float max, const SamplingParams& params,
                      double u);
  Token draw_filtered(const SamplingParams& params, double total, double u);
  void apply_mask(const std::vector<uint32_t>& mask);
  void select_largest(std::span<const float> values, size_t k);
  /// `weights` are those of block_sums_.
  void select_at_least(std::span<const float> weights, float least);
  void keep_mass(double wanted);
  double candidates_total() const;
  void keep_typical(float p);
  void score(std::span<const float> logits, const BatchRow& row, int n_top, RowResult& result);

  std::vector<float> logits_, weights_;  // (vocab)
  std::vector<double> block_sums_;       // of weights_
  std::vector<double> bucket_mass_;
  std::vector<float> block_maxima_;
  std::vector<Candidate> candidates_;
  std::vector<Token> seen_;
};

}  // namespace sluice
