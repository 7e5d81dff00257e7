// The law of decoding speed on wafers: microseconds per token = fixed + per layer x layers, fitted
// to published speeds (calibration/wafers.json).
#pragma once

#include <string>
#include <vector>

namespace sluice {

struct WaferPoint {
  std::string model, kind, source;
  double layers = 0, tokens_per_s = 0;
};
/// Of one user, on CS-3.
const std::vector<WaferPoint>& wafer_points();

struct WaferLaw {
  double fixed_us = 0, layer_us = 0;

  double token_us(double layers) const { return fixed_us + layer_us * layers; }
};
/// Least squares of log(predicted / published).
WaferLaw fit_wafer(const std::vector<WaferPoint>& points);

struct WaferError {
  WaferPoint point;
  double predicted = 0;  // tokens/s, by a law fitted without any point of this model
};
std::vector<WaferError> wafer_leave_one_out();

}  // namespace sluice
