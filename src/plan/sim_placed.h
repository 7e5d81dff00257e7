// Batches priced on published hardware: CostModel as the simulation asks for it.
#pragma once

#include <vector>

#include "plan/cost.h"
#include "plan/sim_executor.h"

namespace sluice {

class PlacedCost : public BatchCost {
 public:
  /// A guess takes as long as a layer of the model. `prompts_elsewhere`: of a prompt, only the last
  /// position is computed here; the cache of the others has been sent.
  explicit PlacedCost(CostModel model, bool prompts_elsewhere = false);
  void price(const BatchLoad& load, BatchPrice& price) const override;

 private:
  struct Link {
    double fixed_us = 0, row_us = 0, logit_us = 0;
  };

  CostModel model_;
  bool prompts_elsewhere_ = false;
  std::vector<size_t> like_;  // by hop: the first one that costs the same
  std::vector<Link> links_;
};

}  // namespace sluice
