// What the server counts, in the text format of Prometheus.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/stats.h"

namespace sluice {

/// Counts seconds in buckets that grow by about 2.5.
class Histogram {
 public:
  static constexpr std::array<double, 13> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,  0.5,    1,     2.5,  10,    60};
  void add(double seconds);
  /// The lines of one series; `labels` is `model="x"`.
  void write(std::string& out, const std::string& name, const std::string& labels) const;

 private:
  std::array<uint64_t, kBounds.size() + 1> counts_{};  // the last: above all bounds
  double sum_ = 0;
};

/// Only touched on the engine's thread.
struct Metrics {
  Histogram queue_s;        // from the start of a request to the first step that serves it
  Histogram first_token_s;  // from the start of a request to each choice's first token
  Histogram inter_token_s;  // between two tokens of a choice
};

/// What one served model has counted.
struct ModelMetrics {
  std::string model;
  Metrics metrics;
  EngineStats stats;
};

/// Of the server as a whole.
struct ServerMetrics {
  int n_open = 0;                                     // requests admitted and not yet answered
  std::vector<std::pair<int, uint64_t>> n_responses;  // by status, those that have occurred
};

std::string metrics_text(const std::vector<ModelMetrics>& models, const ServerMetrics& server);

}  // namespace sluice
