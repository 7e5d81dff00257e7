// Rotary position frequencies from config.json (RoPE: arXiv 2104.09864; YaRN: arXiv 2309.00071).
#pragma once

#include "base/json.h"
#include "kernels/pass.h"
#include "weights/checkpoint.h"

namespace sluice {

/// Frequencies for `rotary_dims` dims of each head, with the scaling that `rope_scaling` (or
/// `rope_parameters`) names: default, linear, dynamic (within the published context), llama3, yarn.
/// A checkpoint tensor "rope_freqs.weight" divides them instead, as GGUF files store llama3's.
/// Throws kUnsupported for other kinds.
Rope make_rope(const Config& config, const Checkpoint& checkpoint, int rotary_dims);

}  // namespace sluice
