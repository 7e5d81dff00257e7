// One stage: the blocks it owns, their weights in its own memory, their caches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/storage.h"
#include "engine/sampler.h"
#include "models/model.h"
#include "pipeline/frame.h"
#include "plan/plan.h"

namespace sluice {

struct StageOptions {
  bool cache_f16 = true;  // keys and values in 16 bits
  CachePools pools;
};

class Stage {
 public:
  /// Loads the weights of the plan's blocks (and of embedding and head where the route puts them),
  /// packing on `pass`'s threads. `model` outlives the stage; stages do not share blocks.
  Stage(Model& model, const Checkpoint& checkpoint, const StagePlan& plan, bool embeds,
        const StageOptions& options, Pass& pass);

  /// Computes one hop of a frame. With hop.head the frame's result is complete afterwards.
  void run(Frame& frame, const Hop& hop);

  int64_t weight_bytes() const { return int64_t(weights_.bytes()) + mapped_bytes_; }
  int64_t cache_bytes() const;
  const std::vector<std::string>& widened() const { return widened_; }

 private:
  void begin(const Batch& batch);
  void finish(Frame& frame, const Tensor& x);
  template <typename Use>
  void gather(const Tensor& x, const Use& use);

  Model& model_;
  Pass& pass_;
  PageMemory weights_;
  int64_t mapped_bytes_ = 0;          // of weights that are used where the checkpoint has them
  std::vector<CacheStorage> caches_;  // by block; empty for blocks of other stages
  std::vector<std::string> widened_;
  Sampler sampler_;

  // Of the batch at hand; kept to avoid allocation.
  std::vector<int32_t> positions_, tokens_, state_save_, wanted_;
  std::vector<Segment> segments_;
};

}  // namespace sluice
