// Measured serving runs, as in the dumps of InferenceX that aiconfigurator publishes: one row per
// run of a model on GPUs, with its layout, the requests in flight and what was measured.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/calibration.h"
#include "plan/cost.h"

namespace sluice {

struct SiliconRow {
  std::string id, model, system, engine, engine_version, precision, measured_on;
  bool disaggregated = false;     // prefill on other devices
  bool equal_lengths = false;     // of all requests; otherwise 80 to 100 % of these
  double prompt = 0, output = 0;  // tokens, at most
  double concurrency = 0;         // requests in flight, of all instances; 0: not recorded
  int tensor = 1, data = 1;       // columns as they are; see layout_of()
  int expert_tensor = 1, expert = 1;
  int workers = 0;                  // 0: not recorded
  bool speculative = false;         // inferred, see read_silicon()
  double tpot_ms = 0, ttft_ms = 0;  // measured; 0: not
};

/// Rows of a CSV whose header names the columns `id`, `model_path`, `system`, `backend`, `mode`,
/// `isl`, `osl` and those of the layout, in any order; others are ignored. Whether a run used its
/// model's prediction layer is not recorded: read_silicon() infers it from the engine's version,
/// and takes copies of a run that is labelled DeepSeek-V3 as plain. Runs of aiconfigurator itself
/// (those whose source is a file in its data/) ask for equal lengths.
/// Throws kInvalidInput naming line and column.
std::vector<SiliconRow> read_silicon(std::string_view csv, const std::string& what);

/// Devices of one instance that decodes.
struct SiliconLayout {
  int tensor = 1, data = 1, expert = 1;
  int instances = 1;
};
SiliconLayout layout_of(const SiliconRow& row, int devices_per_node, bool has_experts);

struct SiliconPrediction {
  double tpot_ms = 0, ttft_ms = 0;  // 0: not predicted
  double load = 0;                  // requests in flight / those whose caches fit at once
};

/// A row made ready to be predicted with any constants.
class SiliconCost {
 public:
  SiliconPrediction predict(const Calibration& calibration);

 private:
  friend class SiliconCosts;
  SiliconCost(const SiliconRow& row, std::shared_ptr<CostModel> cost, const SiliconLayout& layout);

  /// In the memory of an instance, whose cache has 8 bits if its weights have no more.
  double sequences_that_fit(double positions) const;
  /// Mean time to the first token, if the steps of a request that decodes take `step_us`.
  double first_token_us(const Calibration& calibration, double step_us) const;

  std::shared_ptr<CostModel> cost_;  // of all rows that differ in their load only
  SiliconLayout layout_;
  bool disaggregated_ = false, equal_lengths_ = false;
  int guesses_ = 0;                 // of the prediction layer per step
  double collecting_steps_ = 0;     // that a new request waits
  double prompt_ = 1, output_ = 1;  // tokens, on average
  double per_instance_ = 1;         // requests in flight
  double running_ = 1;              // of them, those that the memory has room for
  double load_ = 0;
};

/// Prepares rows. What rows have in common is looked up and built once.
class SiliconCosts {
 public:
  /// Empty with `why` set if the model, the hardware or the precision is not known or the load is
  /// not recorded.
  std::optional<SiliconCost> of(const SiliconRow& row, std::string& why);

 private:
  const ModelShape* model_of(const std::string& name);
  const std::shared_ptr<const Hardware>& hardware_of(const std::string& name);

  std::map<std::string, std::optional<ModelShape>> models_;
  std::map<std::string, std::shared_ptr<const Hardware>> hardware_;
  std::map<std::string, std::shared_ptr<CostModel>> costs_;  // by model, precision and placement
};

}  // namespace sluice
