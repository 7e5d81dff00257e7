// Fits the constants of a calibration to measured rows, and says how far predictions are off.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/silicon.h"

namespace sluice {

/// An operating point: repeats of one run, merged.
struct SiliconPoint {
  SiliconRow row;           // of the first repeat; measured values are means of all
  std::vector<size_t> ids;  // rows that it stands for
  double spread = 1;        // largest / smallest measured time per token
};

/// Rows of the same model, system, engine, layout, lengths and load are one point: whoever repeats
/// a run does not get more votes.
std::vector<SiliconPoint> merge_repeats(std::vector<SiliconRow> rows);

/// "DeepSeek-R1" for every label of one architecture: what is held out together.
std::string family_of(const std::string& model);

struct FitInput {
  std::vector<SiliconPoint> points;
  std::vector<SiliconCost> costs;  // of each point
};
/// Points that can be priced and do not contradict each other.
FitInput fit_input(std::vector<SiliconPoint> points, double most_concurrency);

/// Robust least squares of log(predicted / measured) of the time per token, and of
/// predicted / measured - 1 of the time to the first token, whose long tail upwards a logarithm
/// would follow. Levenberg-Marquardt in the logarithms of the constants, drawn to their starts.
/// `use[i]`: whether point i counts.
Calibration fit_calibration(FitInput& input, const std::vector<bool>& use,
                            const Calibration& start);

/// Of predicted / measured - 1, in percent.
struct ErrorStatistics {
  int n = 0;
  double mean_absolute = 0, bias = 0, median_absolute = 0, worst = 0;
};
ErrorStatistics statistics_of(std::vector<double> errors);

}  // namespace sluice
