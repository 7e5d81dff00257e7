// GET /v1/plan: the plan being executed, and what its stages and the engine have counted.
#pragma once

#include <string>

#include "base/json.h"
#include "engine/stats.h"

namespace sluice {

/// {"model", "plan", "stages": [microseconds per part since the start], "counters": tokens, drafts,
/// queue and cache}.
Json plan_report(const std::string& model, const Json& plan, const EngineStats& stats);

}  // namespace sluice
