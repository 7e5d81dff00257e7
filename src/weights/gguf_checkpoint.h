// A GGUF file seen as a Hugging Face checkpoint.
#pragma once

#include <memory>

#include "weights/checkpoint.h"
#include "weights/gguf.h"

namespace sluice {

/// Throws kUnsupported for an architecture without a row in gguf_config.cc.
std::unique_ptr<Checkpoint> open_gguf_checkpoint(std::unique_ptr<GgufFile> file);

}  // namespace sluice
