#include "plan/sim_placed.h"

#include <algorithm>

namespace sluice {
namespace {

BatchShape shape_of(const BatchLoad& load, bool prompts_elsewhere) {
  BatchShape shape{.rows = 0, .sequences = 0, .logits = double(load.n_sampled)};
  for (LoadSegment s : load.segments) {
    const bool is_received = prompts_elsewhere && !s.decodes;
    if (is_received) {
      if (!s.samples) continue;
      s.first_position += s.n_rows - 1;  // the last row, which gives the first token
      s.n_rows = 1;
    }
    shape.rows += s.n_rows;
    shape.sequences += 1;
    shape.visible += s.n_rows * (s.first_position + (s.n_rows + 1) / 2.0);
    shape.cached += s.first_position;
    shape.prompts += s.decodes || is_received ? 0 : 1;
  }
  return shape;
}

}  // namespace

PlacedCost::PlacedCost(CostModel model, bool prompts_elsewhere)
    : model_(std::move(model)), prompts_elsewhere_(prompts_elsewhere) {
  // Stages of the same devices with the same kinds of blocks cost the same, whatever the batch.
  const BatchShape probes[] = {decode_shape(1, 1000), decode_shape(17, 30000),
                               prefill_shape(300, 5000), prefill_shape(20000, 0)};
  std::vector<std::vector<double>> known;
  for (size_t h = 0; h < model_.hops().size(); ++h) {
    std::vector<double> us;
    for (const BatchShape& probe : probes) {
      const TimeSplit time = model_.hop_time(h, probe);
      us.insert(us.end(), {time.compute_us, time.memory_us, time.collective_us, time.launch_us});
    }
    size_t like = 0;
    while (like < h && known[like] != us) ++like;
    like_.push_back(like);
    known.push_back(std::move(us));
    // Moving a frame takes a fixed time and so much per row.
    const double fixed_us = model_.transfer_us(h, {.rows = 0, .logits = 0});
    links_.push_back({.fixed_us = fixed_us,
                      .row_us = model_.transfer_us(h, {.rows = 1, .logits = 0}) - fixed_us,
                      .logit_us = model_.transfer_us(h, {.rows = 0, .logits = 1}) - fixed_us});
  }
}

void PlacedCost::price(const BatchLoad& load, BatchPrice& price) const {
  const BatchShape shape = shape_of(load, prompts_elsewhere_);
  price.scheduler_us = 0;  // a part of the last hop
  price.draft_us = 0;
  if (shape.rows == 0) {
    std::fill(price.hop_us.begin(), price.hop_us.end(), 0);
    std::fill(price.link_us.begin(), price.link_us.end(), 0);
    return;
  }
  for (size_t h = 0; h < like_.size(); ++h) {
    price.hop_us[h] = like_[h] < h ? price.hop_us[like_[h]] : model_.hop_time(h, shape).total_us();
    price.link_us[h] =
        links_[h].fixed_us + links_[h].row_us * shape.rows + links_[h].logit_us * shape.logits;
  }
  const int guesses = load.guesses();
  for (double us : price.hop_us) price.draft_us += us;
  price.draft_us *= guesses * 2 / double(model_.model().blocks.size());  // two blocks are a layer
}

}  // namespace sluice
