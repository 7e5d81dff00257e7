// The seam between deciding what to compute and computing it. The pipeline implements it with real
// stages, the simulator with modelled time.
#pragma once

#include "cache/cache_spec.h"
#include "engine/request.h"

namespace sluice {

class Executor {
 public:
  virtual ~Executor() = default;

  // Batches and results are handed over by exchange for old ones, whose memory is used again.

  /// Starts a batch. At most depth() batches are under way.
  virtual void submit(Batch& batch) = 0;
  /// Waits for the oldest batch under way; results come in the order of submission.
  virtual void next(Result& result) = 0;
  /// How many batches it wants under way to keep every stage busy.
  virtual int depth() const = 0;
  /// The cache space that batches may refer to.
  virtual CachePools pools() const = 0;
};

}  // namespace sluice
