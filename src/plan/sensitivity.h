// What a plan's speed rests on: each number of its hardware, moved one at a time.
#pragma once

#include <string>
#include <vector>

#include "plan/search.h"

namespace sluice {

/// How much a number moves the speed of one user.
struct Influence {
  std::string hardware, number, kind, source;
  double at_low = 0, at_high = 0;  // tokens/s per user at the ends of its range
  double elasticity = 0;           // relative change of the speed per relative change of the number
};

/// The most influential first; numbers that do not matter are left out.
std::vector<Influence> influences(const ModelShape& model, const Candidate& plan,
                                  const Demand& demand);

/// The share of the speed that nobody official stated and nobody measured.
double estimated_share(const std::vector<Influence>& all);

}  // namespace sluice
