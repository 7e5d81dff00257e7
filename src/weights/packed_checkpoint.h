// A model folder written by `sluice pack`: config.json and one safetensors file that holds every
// matrix in kernel layout, so that it is mapped and used as it is.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "weights/checkpoint.h"

namespace sluice {

inline constexpr const char* kPackedFileName = "packed.safetensors";
/// Written under the metadata key "sluice.layout"; changes whenever kernels/packed_layout.h does.
inline constexpr const char* kPackedLayout = "1";
inline constexpr const char* kPackedLayoutKey = "sluice.layout";

/// What a weight is called in the file: its name, with "#3" for expert 3 and "@0/2" for the first
/// of two stacked parts. A matrix is a U8 tensor of shape (panels, bytes per panel), and the
/// metadata entry of that name says "Q4_1 576 192": type, rows, columns. A vector is an F32 tensor.
std::string packed_name(const WeightName& name);

/// Throws Error naming file, field and expectation.
std::unique_ptr<Checkpoint> open_packed_checkpoint(const std::filesystem::path& folder);

}  // namespace sluice
