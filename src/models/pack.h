// Writes a model's weights in kernel layout, to be mapped by later runs.
#pragma once

#include <filesystem>
#include <functional>

#include "kernels/thread_pool.h"
#include "models/model.h"

namespace sluice {

/// Writes packed.safetensors and config.json (see weights/packed_checkpoint.h) into `folder`, which
/// exists. One matrix is held in memory at a time. Returns the bytes written. Throws kIo, leaving
/// no partial file under that name. `progress` receives the share that is done.
int64_t write_packed(Model& model, const Checkpoint& checkpoint,
                     const std::filesystem::path& folder, ThreadPool& pool,
                     const std::function<void(double)>& progress = {});

}  // namespace sluice
