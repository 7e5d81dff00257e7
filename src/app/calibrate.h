// Measuring this machine for the simulator, and describing a model to what was measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/model.h"
#include "plan/host.h"
#include "weights/tensor.h"

namespace sluice {

struct CalibrateOptions {
  int threads = 1;
  std::vector<int> cores;  // one per thread, or empty: not pinned
  bool i8 = true, cache_f16 = true;
  std::vector<DType> types;        // of matrices, packed
  std::vector<double> footprints;  // bytes of matrices that are read again and again
};

constexpr int kCalibrationRounds = 5;

/// One round, without the bandwidth of reading.
HostProfile calibrate_once(const CalibrateOptions& options,
                           const std::function<void(double)>& progress);

/// Measures everything in several rounds and takes the medians. `progress` hears the share that is
/// done.
HostProfile calibrate(const CalibrateOptions& options,
                      const std::function<void(double)>& progress = {});

/// "Q4_1,F16" -> types with kernels. Throws UsageError naming --types.
std::vector<DType> parse_types(const std::string& list);

/// Declares the model's weights to a counter, so the model must be loaded (again) afterwards.
HostModel describe_for_host(Model& model, const Checkpoint& checkpoint, bool i8);

/// The packed types of the model's matrices, as for parse_types().
std::string matrix_types(const HostModel& model);

}  // namespace sluice
