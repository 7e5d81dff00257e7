#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace sluice {
namespace {

constexpr size_t kBlock = 64;
constexpr float kLowest = -std::numeric_limits<float>::infinity();
constexpr float kGreedy = 1e-5f;

constexpr float kLeastExponent = -87;  // below, a weight is 0

/// exp(x) for -87 <= x <= 0 to within 1e-7 of its value, the same bits on every machine and in
/// every vector width. x = n ln 2 + r, |r| <= ln 2 / 2; exp(r) by its Taylor series.
inline float exp_negative(float x) {
  constexpr float kLog2e = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // 9 bits: n times it is exact
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 12582912;  // 1.5 * 2^23: adding it rounds to an integer
  const float shifted = x * kLog2e + kRound;
  const float n = shifted - kRound;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  return sum * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127) << 23);
}

/// weights[i] = exp((values[i] - max) * scale); block_sums[b] is the sum over block b, in a fixed
/// order. Returns the sum of all.
double exponentiate(std::span<const float> values, float max, float scale,
                    std::vector<float>& weights, std::vector<double>& block_sums) {
  const size_t n = values.size();
  const size_t n_blocks = (n + kBlock - 1) / kBlock;
  weights.resize(n_blocks * kBlock);
  block_sums.resize(n_blocks);
  double total = 0;
  for (size_t b = 0; b < n_blocks; ++b) {
    float* w = weights.data() + b * kBlock;
    const size_t n_here = std::min(kBlock, n - b * kBlock);
    float x[kBlock];
    std::copy_n(values.data() + b * kBlock, n_here, x);
    std::fill(x + n_here, x + kBlock, kLowest);
    // Three loops without branches, so that each is vectorised.
    for (float& exponent : x) {
      exponent = (exponent - max) * scale;
      exponent = exponent > kLeastExponent ? exponent : kLeastExponent;
    }
    for (size_t i = 0; i < kBlock; ++i) w[i] = exp_negative(x[i]);
    for (size_t i = 0; i < kBlock; ++i) w[i] = x[i] > kLeastExponent ? w[i] : 0;
    double lanes[8] = {};
    for (size_t i = 0; i < kBlock; i += 8) {
      for (size_t j = 0; j < 8; ++j) lanes[j] += static_cast<double>(w[i + j]);
    }
    block_sums[b] = ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
                    ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
    total += block_sums[b];
  }
  return total;
}

/// The largest value; NaN if any value is NaN or +inf.
float largest(std::span<const float> values) {
  constexpr size_t kLanes = 32;
  float max[kLanes];
  int bad[kLanes] = {};
  std::fill(max, max + kLanes, kLowest);
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) {
      const float x = values[i + j];
      max[j] = x > max[j] ? x : max[j];
      bad[j] |= !(x <= std::numeric_limits<float>::max());
    }
  }
  for (; i < values.size(); ++i) {
    max[0] = values[i] > max[0] ? values[i] : max[0];
    bad[0] |= !(values[i] <= std::numeric_limits<float>::max());
  }
  if (std::accumulate(bad, bad + kLanes, 0) != 0) return std::numeric_limits<float>::quiet_NaN();
  return *std::max_element(max, max + kLanes);
}

Token first_equal(std::span<const float> values, float value) {
  size_t i = 0;
  for (; i + kBlock <= values.size(); i += kBlock) {
    int found = 0;
    for (size_t j = 0; j < kBlock; ++j) found |= values[i + j] == value;
    if (found) break;
  }
  while (values[i] != value) ++i;
  return static_cast<Token>(i);
}

uint64_t split_mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

bool in_vocabulary(Token token, size_t vocab) {
  return token >= 0 && static_cast<size_t>(token) < vocab;
}

}  // namespace

double uniform_at(uint64_t seed, int64_t position) {
  const uint64_t bits = split_mix(split_mix(seed) ^ static_cast<uint64_t>(position));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

RowResult Sampler::run(const Batch& batch, int row_index, std::span<const float> logits) {
  const BatchRow& row = batch.rows[static_cast<size_t>(row_index)];
  const BatchSequence& sequence = batch.sequences[static_cast<size_t>(row.sequence)];
  RowResult result;
  result.row = row_index;
  const SamplingParams& params = *sequence.sampling;
  if (row.sample) {
    std::span<const Token> history = sequence.history;
    history = history.first(std::min(history.size(), static_cast<size_t>(row.position) + 1));
    const auto* mask = row.mask >= 0 ? &batch.masks[static_cast<size_t>(row.mask)] : nullptr;
    result.token =
        draw(logits, params, history, sequence.n_prompt, mask, row.position + 1, result.error);
  }
  const int n_top = row.sample ? params.n_top_logprobs : -1;
  if (result.error.empty() && (row.target >= 0 || n_top >= 0)) score(logits, row, n_top, result);
  return result;
}

Token Sampler::draw(std::span<const float> logits, const SamplingParams& params,
                    std::span<const Token> history, int n_prompt, const std::vector<uint32_t>* mask,
                    int position, std::string& error) {
  if (mask || !params.logit_bias.empty() || params.needs_history()) {
    if (std::isnan(largest(logits))) {
      error = "logits are not finite";
      return -1;
    }
    logits_.assign(logits.begin(), logits.end());
    adjust(params, history, n_prompt);
    if (mask) apply_mask(*mask);
    logits = logits_;
  }
  const float max = largest(logits);
  if (std::isnan(max)) {
    error = "logits are not finite";
  } else if (max == kLowest) {
    error = "no token may be sampled: all are masked or biased away";
  } else {
    if (params.temperature < kGreedy) return first_equal(logits, max);
    return draw_weighted(logits, max, params, uniform_at(params.seed, position));
  }
  return -1;
}

void Sampler::adjust(const SamplingParams& params, std::span<const Token> history, int n_prompt) {
  const size_t vocab = logits_.size();
  for (const auto& [token, bias] : params.logit_bias) {
    if (in_vocabulary(token, vocab)) logits_[static_cast<size_t>(token)] += bias;
  }
  if (!params.needs_history()) return;
  seen_.reserve(std::bit_ceil(history.size()));
  if (params.repetition_penalty != 1) {
    seen_.assign(history.begin(), history.end());
    std::sort(seen_.begin(), seen_.end());
    seen_.erase(std::unique(seen_.begin(), seen_.end()), seen_.end());
    for (Token token : seen_) {
      if (!in_vocabulary(token, vocab)) continue;
      float& l = logits_[static_cast<size_t>(token)];
      l = l > 0 ? l / params.repetition_penalty : l * params.repetition_penalty;
    }
  }
  const auto generated = history.subspan(std::min(history.size(), static_cast<size_t>(n_prompt)));
  seen_.assign(generated.begin(), generated.end());
  std::sort(seen_.begin(), seen_.end());
  for (size_t i = 0, end; i < seen_.size(); i = end) {
    for (end = i; end < seen_.size() && seen_[end] == seen_[i];) ++end;
    if (!in_vocabulary(seen_[i], vocab)) continue;
    logits_[static_cast<size_t>(seen_[i])] -=
        params.presence_penalty + params.frequency_penalty * static_cast<float>(end - i);
  }
}

/// Without branches: which tokens a mask allows is as good as random.
void Sampler::apply_mask(const std::vector<uint32_t>& mask) {
  std::array<uint32_t, 32> bits;
  for (size_t j = 0; j < bits.size(); ++j) bits[j] = 1u << j;
  const size_t vocab = logits_.size();
  for (size_t i = 0; i < vocab; i += bits.size()) {
    const uint32_t word = i / 32 < mask.size() ? mask[i / 32] : 0;
    if (word == ~0u) continue;
    float* values = logits_.data() + i;
    if (vocab - i >= bits.size()) {
      for (size_t j = 0; j < bits.size(); ++j) values[j] = word & bits[j] ? values[j] : kLowest;
    } else {
      for (size_t j = 0; j < vocab - i; ++j) values[j] = word & bits[j] ? values[j] : kLowest;
    }
  }
}

Token Sampler::draw_weighted(std::span<const float> logits, float max, const SamplingParams& params,
                             double u) {
  const double total = exponentiate(logits, max, 1 / params.temperature, weights_, block_sums_);
  const size_t vocab = logits.size();
  const bool by_k = params.top_k > 0 && static_cast<size_t>(params.top_k) < vocab;
  if (by_k || params.top_p < 1 || params.min_p > 0 || params.typical_p < 1) {
    const auto weights = std::span(weights_).first(vocab);
    if (by_k) {
      select_largest(weights, static_cast<size_t>(params.top_k));
    } else {
      // All tokens lighter than (1 - p) / vocab of the total weigh less than 1 - p together, so the
      // nucleus has none of them.
      float least = std::max(std::numeric_limits<float>::min(), params.min_p);
      if (params.top_p < 1) {
        const double tail = (1 - static_cast<double>(params.top_p)) * total;
        least = static_cast<float>(std::min(1.0, 0.999 * tail / static_cast<double>(vocab)));
      }
      select_at_least(weights, least);
    }
    return draw_filtered(params, by_k ? candidates_total() : total, u);
  }
  double left = u * total;
  size_t block = 0;
  while (block + 1 < block_sums_.size() && left >= block_sums_[block]) left -= block_sums_[block++];
  Token last = -1;
  for (size_t i = block * kBlock; i < vocab; ++i) {
    if (weights_[i] <= 0) continue;
    last = static_cast<Token>(i);
    left -= static_cast<double>(weights_[i]);
    if (left < 0) return last;
  }
  // Rounding may leave a crumb after the last token.
  return last >= 0 ? last : first_equal(logits, max);
}

Token Sampler::draw_filtered(const SamplingParams& params, double total, double u) {
  if (params.top_p < 1) {
    // Positive floats are in the order of their bits.
    for (Candidate& c : candidates_) c.key = std::bit_cast<uint32_t>(c.value);
    keep_mass(static_cast<double>(params.top_p) * total);
  }
  if (params.min_p > 0) {
    std::erase_if(candidates_, [&](const Candidate& c) { return c.value < params.min_p; });
  }
  if (params.typical_p < 1) keep_typical(params.typical_p);
  double left = u * candidates_total();
  for (const Candidate& c : candidates_) {
    left -= static_cast<double>(c.value);
    if (left < 0) return c.token;
  }
  return candidates_.front().token;
}

double Sampler::candidates_total() const {
  double total = 0;
  for (const Candidate& c : candidates_) total += static_cast<double>(c.value);
  return total;
}

void Sampler::select_at_least(std::span<const float> weights, float least) {
  candidates_.clear();
  candidates_.reserve(weights.size() + kBlock + 1);
  for (size_t b = 0; b < block_sums_.size(); ++b) {
    if (block_sums_[b] < 0.999 * static_cast<double>(least)) continue;  // none of it is so heavy
    const size_t first = b * kBlock, end = std::min(first + kBlock, weights.size());
    size_t n = candidates_.size();
    candidates_.resize(n + kBlock + 1);
    for (size_t i = first; i < end; ++i) {
      candidates_[n] = {weights[i], static_cast<Token>(i), 0};
      n += weights[i] >= least;
    }
    candidates_.resize(n);
  }
}

/// Keeps the fewest candidates, largest key first, ties to the lower id, whose weights reach
/// `wanted`. If there are many, their weights are first summed by the leading bits of the key, so
/// that only those with the same leading bits as the last one need sorting.
void Sampler::keep_mass(double wanted) {
  constexpr int kShift = 20;
  double sum = 0;
  auto middle = candidates_.begin(), tail = candidates_.end();  // what is sorted
  if (candidates_.size() > 256) {
    bucket_mass_.assign(size_t{1} << (32 - kShift), 0);
    for (const Candidate& c : candidates_) {
      bucket_mass_[c.key >> kShift] += static_cast<double>(c.value);
    }
    size_t bucket = bucket_mass_.size() - 1;
    while (bucket > 0 && sum + bucket_mass_[bucket] < wanted) sum += bucket_mass_[bucket--];
    middle = std::stable_partition(middle, tail,
                                   [&](const Candidate& c) { return c.key >> kShift > bucket; });
    tail =
        std::partition(middle, tail, [&](const Candidate& c) { return c.key >> kShift == bucket; });
  }
  std::sort(middle, tail, [](const Candidate& a, const Candidate& b) {
    return a.key != b.key ? a.key > b.key : a.token < b.token;
  });
  auto end = middle;
  while (end != tail && (sum < wanted || end == candidates_.begin())) {
    sum += static_cast<double>((end++)->value);
  }
  candidates_.erase(end, candidates_.end());
}

void Sampler::select_largest(std::span<const float> values, size_t k) {
  k = std::min(k, values.size());
  const size_t n_blocks = (values.size() + kBlock - 1) / kBlock;
  float bound = kLowest;
  if (k <= n_blocks) {
    // k blocks have a maximum of at least the k-th largest maximum: so have k values.
    block_maxima_.resize(n_blocks);
    for (size_t b = 0; b < n_blocks; ++b) {
      float max = kLowest;
      for (float x : values.subspan(b * kBlock, std::min(kBlock, values.size() - b * kBlock))) {
        max = x > max ? x : max;
      }
      block_maxima_[b] = max;
    }
    const auto kth = block_maxima_.begin() + static_cast<std::ptrdiff_t>(k) - 1;
    std::nth_element(block_maxima_.begin(), kth, block_maxima_.end(), std::greater<>());
    bound = *kth;
  }
  candidates_.clear();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= bound) candidates_.push_back({values[i], static_cast<Token>(i), 0});
  }
  auto larger = [](const Candidate& a, const Candidate& b) {
    return a.value != b.value ? a.value > b.value : a.token < b.token;
  };
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(k);
  if (end != candidates_.end())
    std::nth_element(candidates_.begin(), end, candidates_.end(), larger);
  candidates_.resize(k);
  std::sort(candidates_.begin(), candidates_.end(), larger);
}

void Sampler::keep_typical(float p) {
  std::erase_if(candidates_, [](const Candidate& c) { return c.value <= 0; });
  const double total = candidates_total();
  double mean = 0;  // of log w
  for (const Candidate& c : candidates_) {
    mean += static_cast<double>(c.value) / total * static_cast<double>(std::log(c.value));
  }
  // -log(share) - H = mean of log w - log w: the logarithm of the total cancels.
  for (Candidate& c : candidates_) {
    const float distance = std::abs(static_cast<float>(mean) - std::log(c.value));
    c.key = ~std::bit_cast<uint32_t>(distance);
  }
  keep_mass(static_cast<double>(p) * total);
}

void Sampler::score(std::span<const float> logits, const BatchRow& row, int n_top,
                    RowResult& result) {
  const float max = largest(logits);
  if (!std::isfinite(max)) {
    result.error = "logits are not finite";
    return;
  }
  const double log_sum =
      std::log(exponentiate(logits, max, 1, weights_, block_sums_)) + static_cast<double>(max);
  auto logprob = [&](Token token) {
    return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(token)]) - log_sum);
  };
  if (row.target >= 0) {
    if (!in_vocabulary(row.target, logits.size())) {
      result.error =
          fmt::format("target: expected a token below {}, got {}", logits.size(), row.target);
      return;
    }
    result.target_logprob = logprob(row.target);
  }
  if (n_top < 0) return;
  result.logprob = logprob(result.token);
  if (n_top == 0) return;
  select_largest(logits, static_cast<size_t>(n_top));
  for (const Candidate& c : candidates_) result.top.push_back({c.token, logprob(c.token)});
}

}  // namespace sluice
