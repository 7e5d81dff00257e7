// What travels between stages: a batch, its activations, and on the way back its result.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/request.h"
#include "kernels/arena.h"

namespace sluice {

/// Frames are made once and reused; in one process they travel as pointers.
struct Frame {
  Batch batch;
  PageMemory x;         // (rows, stride) floats: the activations
  int64_t stride = 0;   // floats per row, a multiple of 16
  Result result;        // filled along the way
  int64_t sent_ns = 0;  // when the last stage handed it on

  float* activations() const { return reinterpret_cast<float*>(x.data()); }
  /// Makes room for `rows` rows.
  void reserve(int64_t rows) {
    const size_t bytes = size_t(rows * stride) * sizeof(float);
    if (x.bytes() < bytes) x = PageMemory(bytes);
  }
};

}  // namespace sluice
