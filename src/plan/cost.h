// What a placement costs: microseconds of each part of a token's way for a batch, and bytes on each
// device. One model for planner and simulator. Formulas and sources: docs/planner-model.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plan/calibration.h"
#include "plan/hardware.h"
#include "plan/model_shape.h"
#include "plan/plan.h"

namespace sluice {

/// Devices of one kind that run a stage together: `data` replicas of the mixers, each with its own
/// sequences, of `tensor` devices that share every matrix. Experts spread over all of them:
/// `expert` groups with their own experts, each of which shares the matrices of an expert.
struct DeviceGroup {
  std::shared_ptr<const Hardware> hardware{};  // groups of one kind share it
  int tensor = 1, data = 1, expert = 1;

  int devices() const { return tensor * data; }
};

/// What runs where. groups[i] runs plan.stages[i].
struct Placement {
  Plan plan{};
  std::vector<DeviceGroup> groups{};
  WeightFormat weights{};
  CacheFormat cache = CacheFormat::k16Bit;
  int compute_bits = 16;  // 16, 8 or 4: the arithmetic of matrices
  std::string engine{};   // "trtllm", "sglang", "vllm" on GPUs; otherwise their mean
};

/// A batch as far as its time depends on it. Sums, so that shapes of parts can be added.
struct BatchShape {
  double rows = 1;       // positions computed
  double sequences = 1;  // they belong to
  double visible = 0;    // positions that rows attend to, their own included; summed over rows
  double cached = 0;     // positions whose cache is read, summed over sequences
  double logits = 1;     // rows that reach the head
  double prompts = 0;    // sequences whose prompt is computed

  BatchShape& operator+=(const BatchShape& other);
};
BatchShape operator+(BatchShape a, const BatchShape& b);

/// `sequences` that decode `rows` positions each (more than one: drafts) after `context` others.
BatchShape decode_shape(double sequences, double context, double rows = 1);
/// `rows` of one prompt after `context` positions that are in the cache.
BatchShape prefill_shape(double rows, double context);

/// Microseconds. Of compute and memory only the slower counts, operation by operation, and is named
/// so.
struct TimeSplit {
  double compute_us = 0, memory_us = 0;
  double collective_us = 0;  // joins within a group
  double launch_us = 0;      // fixed costs per block and step

  double total_us() const { return compute_us + memory_us + collective_us + launch_us; }
  TimeSplit& operator+=(const TimeSplit& other);
};

/// Of the fullest device of a stage.
struct StageMemory {
  double weights_bytes = 0, cache_bytes = 0;
  double usable_bytes = 0;

  bool fits() const { return weights_bytes + cache_bytes <= usable_bytes; }
};

/// What a kind of device reaches of its data sheet.
struct Efficiency {
  double memory = 0.8, expert_memory = 0.8, cache_memory = 0.8;  // of memory_bandwidth
  double compute = 0.6, expert_compute = 0.6;                    // of the peak
  double link = 0.7;                                             // of link_bandwidth
  double block_us = 0;  // per block and step: launches, or the latency of half a layer
  double expert_us = 0, latent_us = 0, indexer_us = 0, recurrent_us = 0;  // more, by kind
  double collective_us = 0;  // per collective of two or more devices
  double token_us = 0;       // per token, spread over all blocks
  double step_us = 0;        // per step: scheduling, sampling
  double sequence_us = 0;    // per step and sequence
  // Least time of a block in a step with prompts, which the host launches kernel by kernel.
  double host_block_us = 0, host_expert_us = 0, host_latent_us = 0;
};
/// Calibrated constants for GPUs (and, for want of better, TPUs), the profile's own numbers
/// otherwise.
Efficiency efficiency_of(const Hardware& hardware, const Calibration& calibration,
                         const std::string& engine, int compute_bits);

class CostModel {
 public:
  /// With the shipped constants. Throws kInvalidInput if plan and model do not agree or a group
  /// makes no sense, kUnsupported naming a number that a profile lacks.
  CostModel(ModelShape model, Placement placement);
  void calibrate(const Calibration& calibration);
  /// The same placement, its groups on hardware of this name on this profile; with the shipped
  /// constants. Throws kUnsupported as the constructor does.
  void exchange(const std::shared_ptr<const Hardware>& hardware);

  const ModelShape& model() const { return model_; }
  const Placement& placement() const { return placement_; }
  /// A token's way, in order.
  const std::vector<Hop>& hops() const { return hops_; }

  /// Computing one hop on its stage.
  TimeSplit hop_time(size_t hop, const BatchShape& batch) const;
  /// Moving the frames of a batch from hop to the next one; from the last hop, the sampled tokens
  /// back to the first. 0 within a stage.
  double transfer_us(size_t hop, const BatchShape& batch) const;
  /// Everything that a stage does for one batch: its hops.
  TimeSplit stage_time(int stage, const BatchShape& batch) const;
  /// All hops and transfers one after the other.
  double latency_us(const BatchShape& batch) const;

  /// With `users` sequences of `positions` each.
  StageMemory memory(int stage, double users, double positions) const;

 private:
  /// Blocks that cost the same.
  struct Kind {
    PartShape part;
    double count = 0;
  };
  /// What the price depends on, looked up once. FLOP/s, B/s, s and B.
  struct Device {
    Efficiency efficiency;
    double peak = 0;
    double attention_peak = 0;  // in 16 bits: attention is not quantised
    double bandwidth = 0, link = 0, hop_latency = 0, usable_bytes = 0;
  };
  Device device_of(const DeviceGroup& group) const;
  void look_up_devices();
  TimeSplit part_time(const PartShape& part, int stage, const BatchShape& batch) const;
  double collective_us(const PartShape& part, int stage, double rows) const;
  double launch_us(const PartShape& part, int stage) const;
  double host_us(const PartShape& part, int stage) const;

  ModelShape model_;
  Placement placement_;
  std::vector<Hop> hops_;
  std::vector<std::vector<Kind>> kinds_;  // of each hop
  std::vector<Device> devices_;           // of each stage
};

}  // namespace sluice
