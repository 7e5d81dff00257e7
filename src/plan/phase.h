// The feasibility diagram: hypothetical models over context length and size.
#pragma once

#include <string>
#include <vector>

#include "plan/hardware.h"
#include "plan/model_shape.h"

namespace sluice {

/// What holds for the whole diagram.
struct PhaseQuestion {
  std::string attention = "mla";  // see attention_names()
  double layers = 80;
  double active = 0.05;  // share of the parameters
  double users = 80;     // in flight
  WeightFormat weights{};
};

struct PhasePoint {
  double context = 0, parameters = 0;
  double devices = 0, user_tokens_per_s = 0, usd_per_mtok = 0;  // 0: no price known
};

/// Prices a model of `parameters` on the least number of devices that holds it and the caches, in
/// one pipeline of groups of a node (wafers and SRAM machines: of single devices).
PhasePoint phase_point(const PhaseQuestion& question, const Hardware& hardware, double context,
                       double parameters);

/// `steps` contexts (1 Ki to 1 Mi tokens) and sizes (10B to 24T), evenly in logarithms.
std::vector<double> phase_contexts(int steps);
std::vector<double> phase_sizes(int steps);

}  // namespace sluice
