// A folder as published on Hugging Face: config.json and *.safetensors.
#pragma once

#include <filesystem>
#include <memory>

#include "weights/checkpoint.h"

namespace sluice {

/// Reads model.safetensors.index.json and its shards, else model.safetensors, else the only
/// *.safetensors of the folder.
std::unique_ptr<Checkpoint> open_hf_checkpoint(const std::filesystem::path& folder);

}  // namespace sluice
