// How a model's publisher wants its answers drawn.
#pragma once

#include "engine/request.h"
#include "weights/checkpoint.h"

namespace sluice {

/// `usual` with the temperature, top_p and top_k that come with the model: from
/// generation_config.json (without do_sample the temperature is 0), from a GGUF file's
/// general.sampling.temp, .top_p and .top_k, or, for `make model`'s, from its model card. Throws
/// kInvalidInput naming file and field.
SamplingParams own_sampling(const Checkpoint& checkpoint, SamplingParams usual = {});

}  // namespace sluice
