// Choosing experts: top-k of router logits, ties to the lower index, in double with a fixed order.
#pragma once

#include <cstdint>
#include <span>

namespace sluice {

/// The k = experts.size() experts with the largest softmax(logits); weights: their probabilities,
/// divided by their sum if `renormalise`. In order of rank. (Qwen3-MoE)
void route_softmax_then_top_k(std::span<const float> logits, bool renormalise,
                              std::span<int32_t> experts, std::span<float> weights);

/// The k experts with the largest logits; weights: softmax over those k alone. (Granite, gpt-oss)
void route_top_k_then_softmax(std::span<const float> logits, std::span<int32_t> experts,
                              std::span<float> weights);

}  // namespace sluice
