// From a config.json to what the planner knows of a model: through the engine's own Model classes
// where they exist, through a description per family (descriptions/*.cc) otherwise.
#pragma once

#include "base/json.h"
#include "plan/model_shape.h"

namespace sluice {

/// `config`: as published; a wrapper with `text_config` is fine. Throws kUnsupported naming the
/// model type if it is of no known family, kInvalidInput for fields that make no sense. `name`:
/// what the model is called, e.g. its path; empty: config.what(). Only looked at for a format that
/// the config does not tell.
ModelShape describe_model(const Config& config, const std::string& name = "");

/// Model types that describe_model knows, for messages.
std::vector<std::string> described_model_types();

}  // namespace sluice
