#include "plan/first_token.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/scheduler.h"

namespace sluice {
namespace {

/// One chunk alone: its way through all stages, what the slowest one computes, and the way to that
/// stage and from there on. Between two of its hops it computes other chunks.
struct Way {
  double total_us = 0, slowest_us = 0, others_us = 0;
};

Way way_of(const CostModel& cost, double rows, double context, bool is_last) {
  BatchShape chunk = prefill_shape(rows, context);
  if (!is_last) chunk.logits = 0;
  struct Stage {
    double busy_us = 0, from_us = -1, to_us = 0;
  };
  std::vector<Stage> stages(cost.placement().plan.stages.size());
  double now_us = 0;
  for (size_t h = 0; h < cost.hops().size(); ++h) {
    const double us = cost.hop_time(h, chunk).total_us();
    Stage& stage = stages[size_t(cost.hops()[h].stage)];
    if (stage.from_us < 0) stage.from_us = now_us;
    stage.busy_us += us;
    stage.to_us = now_us + us;
    now_us = stage.to_us + cost.transfer_us(h, chunk);
  }
  const Stage& slowest =
      *std::max_element(stages.begin(), stages.end(),
                        [](const Stage& a, const Stage& b) { return a.busy_us < b.busy_us; });
  return {now_us, slowest.busy_us, now_us - (slowest.to_us - slowest.from_us)};
}

}  // namespace

double first_token_us(const CostModel& cost, double prompt, int chunk) {
  constexpr double kMostTokens = 1 << 30;
  const int share =
      prompt_share(int(std::min(prompt, kMostTokens)), int(cost.placement().plan.stages.size()));
  const double rows = std::clamp(share, 1, chunk);
  const double n_before = std::max(0.0, std::ceil(prompt / rows) - 1);  // before the last chunk
  const double context = n_before * rows;
  const Way last = way_of(cost, prompt - context, context, true);
  if (n_before == 0) return last.total_us;
  // The time of a chunk grows with what lies before it, in bends that three points follow.
  const Way first = way_of(cost, rows, 0, false);
  const Way middle = way_of(cost, rows, (context - rows) / 2, false);
  const Way end = way_of(cost, rows, context - rows, false);
  const double before_us =
      n_before * (first.slowest_us + 4 * middle.slowest_us + end.slowest_us) / 6;
  return std::max(last.total_us,
                  before_us + last.slowest_us + std::max(end.others_us, last.others_us));
}

}  // namespace sluice
