// This machine as `sluice calibrate` measured it, and what a batch costs on it. Times are
// microseconds.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "plan/sim_executor.h"

namespace sluice {

/// us = fixed + per_unit * units
struct HostLine {
  double fixed_us = 0, per_unit_us = 0;
  double at(double units) const { return fixed_us + per_unit_us * units; }
};

/// Multiplying `rows` rows with matrices of `type`, one after the other, that take `footprint`
/// bytes together: a join each, and so much for a megabyte (10^6 bytes) of weights.
struct HostMatmul {
  std::string type;
  double footprint = 0;
  int rows = 0;
  double op_us = 0, us_per_mb = 0;
};

struct HostProfile {
  std::string isa;
  int threads = 1;
  bool i8 = true, cache_f16 = true;
  std::vector<HostMatmul> matmul;
  std::vector<std::pair<double, double>> read_gb_s;  // (bytes, 10^9 bytes a second), ascending
  HostLine norm;             // units: rows x dims; so few that one thread does them
  HostLine norm_shared;      // likewise, for more
  HostLine attend_decode;    // units: positions seen x heads x dims, summed over rows
  double attend_row_us = 0;  // for each row of it, however little it sees
  HostLine attend_prompt;    // likewise; rows of one prompt share what they read
  HostLine state;            // units: rows x floats of recurrent state
  HostLine sample;           // units: logits of a row
  HostLine scheduler;        // units: sequences in the batch
  double join_us = 0;        // forking and joining threads without work
  double hop_us = 0;         // a frame to a stage on other cores

  /// Between measured points in proportion, beyond them as at the nearest. Throws kNotFound if the
  /// type was not measured.
  HostMatmul matmul_at(const std::string& type, double footprint, double rows) const;
};

/// Times that are the medians of those of `rounds`, which measured the same things of one machine.
HostProfile median_of(const std::vector<HostProfile>& rounds);

OrderedJson host_to_json(const HostProfile& host);
/// Throws kInvalidInput naming the field.
HostProfile host_from_json(const Config& config);

/// Matrices that share an input and a join.
struct HostOp {
  std::string type;
  double bytes = 0;  // of all; of one expert if there are experts
  int n_experts = 0, n_active = 0;
  bool operator==(const HostOp&) const = default;
};

/// What a block, or the head, computes.
struct HostPart {
  std::vector<HostOp> ops;
  double row_values = 0;     // normed, rotated, activated: per row
  double attend_values = 0;  // heads x dims; 0: no attention
  int window = 0;            // positions seen at most; 0: all
  double state_floats = 0;
  bool operator==(const HostPart&) const = default;
};

struct HostModel {
  std::vector<HostPart> blocks;
  HostPart head;
  double vocab = 0;
  double bytes = 0;        // that a step reads: the footprint of its matrices
  bool fine_head = false;  // the head computes two rows for each
};

class HostCost : public BatchCost {
 public:
  /// `host` and `model` outlive the cost. Throws kNotFound if a type was not measured.
  HostCost(const HostProfile& host, const HostModel& model, const Plan& plan);
  void price(const BatchLoad& load, BatchPrice& price) const override;

 private:
  struct HopParts {
    std::vector<std::pair<size_t, int>> parts;  // index into parts_, how many of them
    bool head = false;
  };

  double part_us(const HostPart& part, const BatchLoad& load, double n_rows) const;
  double op_us(const HostOp& op, double n_rows) const;
  double head_us(const BatchLoad& load) const;
  void demand_types(const HostPart& part) const;
  const HostMatmul& matmul_at(const std::string& type, double rows) const;

  const HostProfile& host_;
  const HostModel& model_;
  std::vector<HostPart> parts_;  // without repetition
  std::vector<HopParts> hops_;
  mutable std::map<std::pair<std::string, double>, HostMatmul> known_;  // what matmul_at() found
};

}  // namespace sluice
