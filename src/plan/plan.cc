#include "plan/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"

namespace sluice {
namespace {

/// How many consecutive parts of at most `limit` the costs need.
int parts_needed(const std::vector<double>& costs, double limit) {
  int parts = 1;
  double sum = 0;
  for (double cost : costs) {
    if (sum > 0 && sum + cost > limit) {
      ++parts;
      sum = 0;
    }
    sum += cost;
  }
  return parts;
}

/// The smallest limit for which parts_needed() is at most n: one of the sums of consecutive costs.
double smallest_limit(const std::vector<double>& costs, int n) {
  double low = 0, high = 0;
  for (double cost : costs) {
    low = std::max(low, cost);
    high += cost;
  }
  for (int step = 0; step < 100 && low < high; ++step) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (parts_needed(costs, middle) <= n ? high : low) = middle;
  }
  return parts_needed(costs, low) <= n ? low : high;
}

std::vector<std::pair<int, int>> ranges_from_json(const Config& stage, int n_blocks) {
  std::vector<std::pair<int, int>> ranges;
  if (!stage.has("blocks")) return ranges;
  const Json& list = stage.json().at("blocks");
  const auto fail = [&] {
    throw Error(ErrorCode::kInvalidInput,
                "{}: blocks: expected ascending ranges [first, last) within [0, {}]", stage.what(),
                n_blocks);
  };
  if (!list.is_array()) fail();
  int64_t previous = 0;
  for (const Json& range : list) {
    if (!range.is_array() || range.size() != 2 || !range[0].is_number_integer() ||
        !range[1].is_number_integer()) {
      fail();
    }
    const int64_t first = range[0].get<int64_t>(), last = range[1].get<int64_t>();
    if (first < previous || last <= first || last > n_blocks) fail();
    previous = last;
    ranges.emplace_back(int(first), int(last));
  }
  return ranges;
}

void check_cores(const Plan& plan) {
  std::map<int, std::vector<int>> pool_of;
  for (const StagePlan& stage : plan.stages) {
    for (int core : stage.cores) {
      const auto [it, is_new] = pool_of.emplace(core, stage.cores);
      if (!is_new && it->second != stage.cores) {
        throw Error(ErrorCode::kInvalidInput,
                    "plan: stage {}: cores: core {} belongs to another stage's different list of "
                    "cores; stages share all their cores or none",
                    stage.name, core);
      }
    }
  }
}

}  // namespace

Plan split_by_cost(const std::vector<double>& costs, int n_stages) {
  const int n = int(costs.size());
  if (n_stages < 1 || n_stages > n) {
    throw Error(ErrorCode::kInvalidInput, "stages: expected 1 to {} for this model, got {}", n,
                n_stages);
  }
  const double limit = smallest_limit(costs, n_stages);
  Plan plan{.n_blocks = n - 1, .stages = {}};
  int first = 0;
  for (int s = 0; s < n_stages; ++s) {
    const int stages_after = n_stages - s - 1;
    int last = first + 1;
    double sum = costs[size_t(first)];
    while (last < n - stages_after && (stages_after == 0 || sum + costs[size_t(last)] <= limit)) {
      sum += costs[size_t(last++)];
    }
    StagePlan stage{
        .name = fmt::format("stage {}", s), .blocks = {}, .head = last == n, .cores = {}};
    if (first < std::min(last, n - 1)) stage.blocks.emplace_back(first, std::min(last, n - 1));
    plan.stages.push_back(std::move(stage));
    first = last;
  }
  return plan;
}

std::vector<Hop> route(const Plan& plan) {
  std::vector<int> owner(size_t(plan.n_blocks), -1);
  int head = -1;
  for (int s = 0; s < int(plan.stages.size()); ++s) {
    const StagePlan& stage = plan.stages[size_t(s)];
    for (const auto& [first, last] : stage.blocks) {
      for (int b = first; b < last; ++b) {
        if (owner[size_t(b)] >= 0) {
          throw Error(ErrorCode::kInvalidInput, "plan: stage {}: block {} is on two stages",
                      stage.name, b);
        }
        owner[size_t(b)] = s;
      }
    }
    if (stage.head && head >= 0) {
      throw Error(ErrorCode::kInvalidInput, "plan: stage {}: head: it is on two stages",
                  stage.name);
    }
    if (stage.head) head = s;
  }
  if (head < 0) throw Error(ErrorCode::kInvalidInput, "plan: no stage has \"head\": true");
  check_cores(plan);
  std::vector<Hop> hops;
  for (int b = 0; b < plan.n_blocks; ++b) {
    const int stage = owner[size_t(b)];
    if (stage < 0) throw Error(ErrorCode::kInvalidInput, "plan: block {} is on no stage", b);
    if (hops.empty() || hops.back().stage != stage) hops.push_back({stage, b, b});
    hops.back().last_block = b + 1;
  }
  if (hops.empty() || hops.back().stage != head) {
    hops.push_back({head, plan.n_blocks, plan.n_blocks});
  }
  hops.front().embed = true;
  hops.back().head = true;
  return hops;
}

Plan plan_from_json(const Json& json, const std::string& what) {
  const Config config(json, what);
  Plan plan{.n_blocks = int(config.integer_in("n_blocks", 1, 1 << 16)), .stages = {}};
  if (!config.has("stages") || !json.at("stages").is_array() || json.at("stages").empty()) {
    throw Error(ErrorCode::kInvalidInput, "{}: stages: expected a list of stages", what);
  }
  for (const Json& item : json.at("stages")) {
    const Config stage(item, fmt::format("{}: stages[{}]", what, plan.stages.size()));
    StagePlan out{.name = stage.text("name", fmt::format("stage {}", plan.stages.size())),
                  .blocks = ranges_from_json(stage, plan.n_blocks),
                  .head = stage.boolean("head", false),
                  .cores = {}};
    if (stage.has("cores")) {
      for (int64_t core : stage.integers("cores")) {
        if (core < 0 || core > 4095) {
          throw Error(ErrorCode::kInvalidInput, "{}: cores: expected 0 to 4095, got {}",
                      stage.what(), core);
        }
        out.cores.push_back(int(core));
      }
      if (std::set<int>(out.cores.begin(), out.cores.end()).size() != out.cores.size()) {
        throw Error(ErrorCode::kInvalidInput, "{}: cores: a core is listed twice", stage.what());
      }
    }
    plan.stages.push_back(std::move(out));
  }
  route(plan);
  return plan;
}

Json plan_to_json(const Plan& plan) {
  Json stages = Json::array();
  for (const StagePlan& stage : plan.stages) {
    Json item = {{"name", stage.name}, {"blocks", stage.blocks}};
    if (stage.head) item["head"] = true;
    if (!stage.cores.empty()) item["cores"] = stage.cores;
    stages.push_back(std::move(item));
  }
  return {{"n_blocks", plan.n_blocks}, {"stages", std::move(stages)}};
}

}  // namespace sluice
