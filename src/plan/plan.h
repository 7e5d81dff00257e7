// The plan: which block of the model lives on which stage. Plain data, JSON on disk:
//   {"n_blocks": 60,
//    "stages": [{"name": "a", "blocks": [[0, 20]], "cores": [0]},
//               {"name": "b", "blocks": [[20, 60]], "head": true, "cores": [1]}]}
// Blocks are numbered in order of execution; ranges are half-open. A stage may own several ranges,
// e.g. only mixers. Stages with the same cores share one pool of threads; no cores: the default
// pool.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace sluice {

struct StagePlan {
  std::string name;
  std::vector<std::pair<int, int>> blocks;  // half-open, ascending
  bool head = false;                        // norm and output matrix, and the sampler
  std::vector<int> cores;                   // logical CPUs
};

struct Plan {
  int n_blocks = 0;
  std::vector<StagePlan> stages;
};

/// Part of a token's way: blocks [first, last) on one stage. The first hop also embeds, the last
/// one also computes the head.
struct Hop {
  int stage = 0;
  int first_block = 0, last_block = 0;
  bool embed = false, head = false;
};

/// Cuts blocks and head into `n_stages` consecutive parts such that the most expensive part is as
/// cheap as possible. `costs`: one per block, then the head's. Throws kInvalidInput if there are
/// fewer than n_stages parts.
Plan split_by_cost(const std::vector<double>& costs, int n_stages);

/// The hops of a token, in order. Throws kInvalidInput unless every block is on exactly one stage,
/// exactly one stage has the head, and pools of cores do not overlap.
std::vector<Hop> route(const Plan& plan);

Plan plan_from_json(const Json& json, const std::string& what);
Json plan_to_json(const Plan& plan);

}  // namespace sluice
