// How many bytes of weights the parts of a model hold, and how many of them one token reads.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"

namespace sluice {

/// Packed bytes, from the checkpoint's types; nothing is loaded.
struct PartBytes {
  int64_t dense = 0;    // read for every token
  int64_t experts = 0;  // of all experts together
  int n_experts = 0;
  int n_active = 0;  // experts that one token uses

  int64_t total() const { return dense + experts; }
  /// Read to compute one step of `n_rows` tokens that choose their experts independently.
  double read_by(int n_rows) const;
};

struct ModelBytes {
  PartBytes embedding;
  std::vector<PartBytes> blocks;
  PartBytes head;
  bool tied = false;  // embedding and head share their matrix

  /// Of the whole model; a tied matrix counts once.
  int64_t total() const;
  /// A step reads all but an embedding table, of which it reads a row per token.
  double read_by(int n_rows) const;
};

/// Declares the model's weights to a counter, so the model must be loaded (again) afterwards.
ModelBytes count_bytes(Model& model, const Checkpoint& checkpoint);

/// Bytes of keys, values and states that a token at `depth` reads, of all blocks.
double cache_read_bytes(const Model& model, int64_t depth, bool f16);

}  // namespace sluice
