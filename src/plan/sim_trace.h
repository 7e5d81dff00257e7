// What a simulation did and when, for Perfetto and chrome://tracing.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "plan/sim_executor.h"

namespace sluice {

class SimTrace {
 public:
  struct RequestSpan {
    double arrival_us = 0, first_us = 0, last_us = 0;
    int prompt = 0, output = 0;  // tokens
  };

  /// Keeps the first `limit` spans of stages, and of requests.
  explicit SimTrace(size_t limit) : limit_(limit) {}

  void add(const SimSpan& span);
  void add(const RequestSpan& request);
  bool is_cut() const { return is_cut_; }
  size_t limit() const { return limit_; }

  /// Chrome's trace format: a lane per stage with the batches it computed, arrows that follow each
  /// batch from stage to stage, and the requests with their first tokens.
  void write(std::ostream& out, const SimRoute& route) const;

 private:
  struct StageSpan {
    uint64_t batch = 0;
    int stage = 0;
    int prompt_rows = 0, decode_rows = 0;
    double start_us = 0, end_us = 0;
  };

  size_t limit_;
  std::vector<StageSpan> spans_;
  std::vector<RequestSpan> requests_;
  bool is_cut_ = false;
};

}  // namespace sluice
