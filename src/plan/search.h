// From a demand to placements: what could run it, how fast and at what price, best first.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/cost.h"
#include "plan/draft.h"

namespace sluice {

struct Demand {
  double users = 1;      // in flight at a time
  double prompt = 4096;  // tokens of each
  double output = 1024;  // tokens made for each
  double min_speed = 0;  // tokens/s per user; 0: none
  double max_first_ms = 0;
  double max_power = 0;  // W
  double max_usd = 0;    // per hour
  int max_devices = 0;
  bool fastest = false;  // instead of cheapest
  bool frugal = false;   // the fewest joules per token, cooling included, instead of cheapest
  Draft draft{};
  WeightFormat weights{};
  CacheFormat cache = CacheFormat::k16Bit;
  int compute_bits = 16;
};

/// A placement and what it gives.
struct Candidate {
  std::string name;  // "8 x B200: tensor 8"
  Placement placement{};
  int devices = 0;
  StageMemory fullest{};     // of the stage with the least room
  std::string fullest_on{};  // its hardware
  TimeSplit time{};          // of one verification of all stages, and what its hops take
  double hops_us = 0, draft_us = 0;
  double accepted = 1;  // tokens per pass, on average
  int in_pipe = 1;      // batches of a user under way at a time
  double slowest_stage_us = 0;
  double token_us = 0;      // per emitted token of one user
  double first_ms = 0;      // to the first token, alone
  double tokens_per_s = 0;  // of all users
  std::optional<double> usd_per_hour{}, watts{};
  std::optional<double> site_watts{};  // with cooling and losses: each device's power times its PUE
  std::string fault{};                 // what it lacks; empty: it meets the demand
  double short_by = 1;                 // how many times too little
  /// By which ways of placing a model on this hardware it came about; for another load the same way
  /// leads to a placement that is like it.
  std::vector<int> ways{};

  double user_tokens_per_s() const { return 1e6 / token_us; }
  std::optional<double> usd_per_mtok() const;
  std::optional<double> joules_per_token() const;
};

/// Of a device: its rent, or its capital written off in four years; empty if neither is known.
std::optional<double> usd_per_hour(const Hardware& hardware);

/// Prices one placement.
Candidate price(const ModelShape& model, Placement placement, const Demand& demand);

/// Only the tokens/s of one user.
double user_speed(const CostModel& cost, const Demand& demand);

/// Placements on one kind of hardware, or mixers on the first and feed-forwards on the second.
/// Those that meet the demand come first, best first; then the others, nearest first. Throws
/// kUnsupported if the hardware cannot be priced.
std::vector<Candidate> search(const ModelShape& model, const std::vector<Hardware>& hardware,
                              const Demand& demand);

/// Is told of each candidate, with the costs of its placement; of those of a placement in order of
/// drafts.
using OnCandidate = std::function<void(const Candidate&, const CostModel&)>;

/// The first of search() for each draft; cheaper than one by one.
std::vector<Candidate> best_by_draft(const ModelShape& model, const std::vector<Hardware>& hardware,
                                     Demand demand, const std::vector<Draft>& drafts,
                                     const OnCandidate& on_candidate = nullptr);

/// The arithmetic of matrices that suits their format: 16, 8 or 4 bits.
int compute_bits_for(const WeightFormat& format);

/// How far predictions for such devices were off where they could be checked, in percent; see
/// `sluice validate`.
int error_percent(const Hardware& hardware);

/// {"model", "n_blocks", "stages": [{..., "hardware", "tensor", "data", "expert"}], "weights",
/// "cache", "compute_bits", ...}: a plan that engine, planner and simulator read.
OrderedJson placement_to_json(const Placement& placement, const std::string& model);
/// Throws kInvalidInput or kNotFound naming the field.
Placement placement_from_json(const Json& json, const std::string& what);

}  // namespace sluice
