// A matrix or vector cut out of a stored tensor, with its shape checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weights/checkpoint.h"
#include "weights/tensor.h"

namespace sluice {

/// Rows [part, part + 1) of n_parts equal parts, of one expert where expert >= 0.
struct Slice {
  const TensorView* tensor = nullptr;
  std::string where;  // "model.gguf: tensor blk.0.attn_q.weight"
  int expert = -1;
  int part = 0, n_parts = 1;
};

/// The tensor must be (n_parts * rows, cols), or (n_experts, n_parts * rows, cols); dimensions of 1
/// may be missing or in excess. Throws kInvalidInput.
MatrixSource slice_matrix(const Slice& slice, int64_t rows, int64_t cols);

/// The tensor must hold n_parts * n values, or (n_experts, n_parts * n). Throws kInvalidInput, and
/// kUnsupported when the slice does not begin at a block.
std::vector<float> slice_vector(const Slice& slice, int64_t n);

/// Gives back the pages of the mapping that only this matrix uses.
void release_matrix(const MatrixSource& source);

}  // namespace sluice
