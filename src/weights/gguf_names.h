// Hugging Face tensor names -> GGUF tensor names.
#pragma once

#include <optional>
#include <string>

#include "weights/checkpoint.h"
#include "weights/gguf.h"

namespace sluice {

/// Where a weight of a Hugging Face checkpoint is in a GGUF file.
struct GgufPlace {
  const TensorView* tensor = nullptr;
  int part = 0, n_parts = 1;              // as in WeightName, of the tensor's rows
  bool is_negative_exp = false;           // holds -exp(A_log) for A_log
  bool is_query = false, is_key = false;  // a tensor whose rows some converters interleave
  int layer = -1;                         // -1: outside the layers
};

/// The first tensor of the file that the name may stand for.
std::optional<GgufPlace> find_in_gguf(const GgufFile& file, const WeightName& name);

}  // namespace sluice
