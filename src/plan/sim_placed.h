// Batches priced on published hardware: CostModel as the simulation asks for it.
#pragma once

#include <vector>

#include "plan/cost.h"
#include "plan/sim_executor.h"

namespace sluice {

class PlacedCost : public BatchCost {
 public:
  /// A guess takes as long as a layer of the model.
  explicit PlacedCost(CostModel model);
  void price(const BatchLoad& load, BatchPrice& price) const override;

 private:
  struct Link {
    double fixed_us = 0, row_us = 0, logit_us = 0;
  };

  CostModel model_;
  std::vector<size_t> like_;  // by hop: the first one that costs the same
  std::vector<Link> links_;
};

}  // namespace sluice
