// What the planner's commands read: models and hardware by name.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "plan/hardware.h"
#include "plan/model_shape.h"

namespace sluice {

struct FoundModel {
  ModelShape shape;
  double weights = -1;  // bytes as packed by the engine; -1: not on disk, count by format
};

/// --weights and --cache: the formats that are priced.
void add_formats(CLI::App& app, std::string& weights, std::string& cache);

/// A name of the catalogue, a config.json, a model on disk, or "3T/150B/80/mla". Throws kNotFound
/// with the nearest name.
FoundModel find_model(const std::string& name);

/// Throws kNotFound naming `flag`, with the nearest name. A path of a profile in JSON is read.
Hardware require_hardware(const std::string& name, const std::string& flag);

}  // namespace sluice
