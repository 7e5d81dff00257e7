#include "kernels/routing.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

/// Fills `experts` with the indices of the largest logits; NaN ranks last.
void top_k(std::span<const float> logits, std::span<int32_t> experts) {
  const auto key = [&](int32_t e) {
    const float logit = logits[size_t(e)];
    return std::isnan(logit) ? -INFINITY : logit;
  };
  size_t n = 0;
  for (int32_t e = 0; e < int32_t(logits.size()); ++e) {
    size_t at = n;
    while (at > 0 && key(experts[at - 1]) < key(e)) --at;
    if (at == experts.size()) continue;
    n = std::min(n + 1, experts.size());
    std::copy_backward(experts.begin() + long(at), experts.begin() + long(n) - 1,
                       experts.begin() + long(n));
    experts[at] = e;
  }
}

}  // namespace

void route_softmax_then_top_k(std::span<const float> logits, bool renormalise,
                              std::span<int32_t> experts, std::span<float> weights) {
  top_k(logits, experts);
  const double max = logits[size_t(experts[0])];
  double sum = 0;
  if (renormalise) {
    for (int32_t e : experts) sum += std::exp(logits[size_t(e)] - max);
  } else {
    for (float logit : logits) sum += std::exp(logit - max);
  }
  for (size_t i = 0; i < experts.size(); ++i) {
    weights[i] = float(std::exp(logits[size_t(experts[i])] - max) / sum);
  }
}

void route_top_k_then_softmax(std::span<const float> logits, std::span<int32_t> experts,
                              std::span<float> weights) {
  route_softmax_then_top_k(logits, true, experts, weights);
}

}  // namespace sluice
