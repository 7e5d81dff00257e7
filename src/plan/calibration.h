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
  kMemory,              // weights that every token reads
  kExpertMemory,        // experts
  kExpertMemoryUnpack,  // factor on it for 4 bits before Blackwell
  kCacheMemory,         // caches
  kCompute,
  kLink,
  kBlockTrtllm,  // per block
  kBlockSglang,
  kBlockVllm,
  kExpertBlockTrtllm,  // more, per block of experts
  kExpertBlockSglang,
  kExpertBlockVllm,
  kExpertBlockFp4,  // factor on it in 4 bits
  kLatentBlock,     // more, per block of latent attention
  kIndexerBlock,    // more, per block with an indexer
  kRecurrentBlock,  // more, per recurrent block
  kHopper,          // factor on the times per block before Blackwell
  kCollective,      // per collective
  kStep,            // per step
  kSequenceTrtllm,  // per step and sequence
  kSequenceSglang,
  kSequenceVllm,
  kPrompt,            // per prompt
  kAccepted,          // tokens per verified draft of three (DeepSeek's prediction layer)
  kFirstTokenTrtllm,  // before the first token, at any length
  kFirstTokenSglang,
  kFirstTokenVllm,
  kFirstTokenPromptTrtllm,  // factor on the time of a prompt alone
  kFirstTokenPromptSglang,
  kFirstTokenPromptVllm,
  kFirstTokenSteps,  // steps that a prompt waits for
  kFirstTokenQueue,  // prompts that wait for each other: queue x others^power
  kFirstTokenQueuePower,
  kConstants
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
};

/// Every constant at its start.
Calibration uncalibrated();
/// Throws kInvalidInput naming the constant.
Calibration calibration_from_json(const Config& config);
OrderedJson calibration_to_json(const Calibration& calibration, const std::string& source);
/// calibration/gpu.json.
const Calibration& shipped_calibration();

}  // namespace sluice
