// Models that nobody published, from a few numbers.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/model_shape.h"

namespace sluice {

/// "gqa" (8 heads of 128 for keys and values, as Llama 3), "mla" (latents of 576, as DeepSeek V3),
/// "hybrid" (3 layers of states to 1 of latents, as Kimi K3), "compressed" (an entry per 4 or 128
/// positions, as DeepSeek V4).
std::vector<std::string> attention_names();

/// `total` and `active` parameters, embedding and head included; equal: no experts, otherwise 256
/// of which 8 are active. Throws kInvalidInput naming what makes no sense.
ModelShape hypothetical_model(double total, double active, int layers,
                              const std::string& attention);

/// "3T/150B/80/mla": total, active, layers, attention. Empty if it is not of that form.
std::optional<ModelShape> hypothetical_named(std::string_view text);

/// "3T", "150B", "7.5M", "1e12". Empty if it is no number.
std::optional<double> parse_count(std::string_view text);

}  // namespace sluice
