// What GPUs and their serving engines reach of the data sheet: constants fitted to measured rows,
// in calibration/gpu.json with the ids of those rows.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/json.h"

namespace sluice {

/// Indices of Calibration::values. Efficiencies are fractions of the data sheet, times are us.
enum Constant {
  kMemory,         // weights that every token reads
  kExpertMemory,   // experts
  kCacheMemory,    // caches
  kCompute,        // matrices that every token uses, and attention
  kExpertCompute,  // experts
  kLink,
  kBlockTrtllm,  // per block
  kBlockSglang,
  kBlockVllm,
  kExpertBlock,     // more, per block of experts
  kExpertBlockFp4,  // factor on it in 4 bits, where there is arithmetic for them
  kLatentBlock,     // more, per block of latent attention
  kIndexerBlock,    // more, per block with an indexer
  kRecurrentBlock,  // more, per recurrent block
  kCollective,      // per collective
  kStep,            // per step
  kSequence,        // per step and sequence
  kHostBlock,  // least time per block of a step with prompts, which no graph launches; by engine
  kHostExpertBlock = kHostBlock + 3,  // more, per block of experts
  kHostLatentBlock,                   // more, per block of latent attention
  kAccepted,         // chance that a guess of DeepSeek's prediction layer is accepted
  kFirstToken,       // before the first token, at any length
  kFirstTokenSteps,  // steps that a request waits before its prompt and for its token; by engine
  kFirstTokenBunch = kFirstTokenSteps + 3,  // requests of one length that stay in step; by engine
  kConstants = kFirstTokenBunch + 3
};

struct ConstantInfo {
  const char* name;
  double start;      // where a fit starts, and is drawn to
  double low, high;  // what makes physical sense
};
extern const std::array<ConstantInfo, kConstants> kConstantInfo;

struct Calibration {
  std::array<double, kConstants> values;
  std::vector<std::string> rows;  // ids it was fitted to

  /// The constant of "trtllm", "sglang" or "vllm", which begin at `first`; of another engine, their
  /// mean.
  double by_engine(Constant first, const std::string& engine) const;
};

/// Every constant at its start.
Calibration uncalibrated();
/// Throws kInvalidInput naming the constant.
Calibration calibration_from_json(const Config& config);
OrderedJson calibration_to_json(const Calibration& calibration, const std::string& source);
/// calibration/gpu.json.
const Calibration& shipped_calibration();

}  // namespace sluice
