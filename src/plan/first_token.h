// How long an idle system takes to the first token of a prompt, which the scheduler cuts into
// chunks that follow each other through the stages.
#pragma once

#include "plan/cost.h"

namespace sluice {

/// Most rows of a batch on accelerators, where a row takes little next to a step: what engines
/// take for such devices.
inline constexpr int kPromptChunk = 8192;

/// Microseconds until the token after `prompt` positions is back. Of the stages the one counts
/// that is longest with all chunks; the first chunk must get there, and the last one from there to
/// the end. `chunk`: most rows of a batch.
double first_token_us(const CostModel& cost, double prompt, int chunk = kPromptChunk);

}  // namespace sluice
