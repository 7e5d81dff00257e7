#include "plan/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <memory>

namespace sluice {

std::vector<Influence> influences(const ModelShape& model, const Candidate& plan,
                                  const Demand& demand) {
  std::vector<Influence> all;
  CostModel cost(model, plan.placement);
  const auto speed_with = [&](const std::shared_ptr<const Hardware>& published,
                              const std::string& number, double value) {
    Hardware changed = *published;
    changed.numbers[number].value = value;
    cost.exchange(std::make_shared<const Hardware>(std::move(changed)));
    const double speed = user_speed(cost, demand);
    cost.exchange(published);
    return speed;
  };
  std::vector<std::string> seen;
  for (const DeviceGroup& group : plan.placement.groups) {
    if (std::find(seen.begin(), seen.end(), group.hardware->name) != seen.end()) continue;
    seen.push_back(group.hardware->name);
    for (const auto& [number, q] : group.hardware->numbers) {
      const std::string& name = group.hardware->name;
      const double bumped = speed_with(group.hardware, number, q.value * 1.01);
      const double elasticity = std::abs(bumped / plan.user_tokens_per_s() - 1) / 0.01;
      if (elasticity < 1e-6) continue;
      Influence influence{.hardware = name,
                          .number = number,
                          .kind = q.kind,
                          .source = q.source,
                          .elasticity = elasticity};
      influence.at_low =
          q.low < q.value ? speed_with(group.hardware, number, q.low) : plan.user_tokens_per_s();
      influence.at_high =
          q.high > q.value ? speed_with(group.hardware, number, q.high) : plan.user_tokens_per_s();
      all.push_back(std::move(influence));
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Influence& a, const Influence& b) { return a.elasticity > b.elasticity; });
  return all;
}

/// The share of the speed that nobody official stated and nobody measured.
double estimated_share(const std::vector<Influence>& all) {
  double sum = 0, estimated = 0;
  for (const Influence& i : all) {
    sum += i.elasticity;
    if (i.kind == "estimated" || i.kind == "assumed") estimated += i.elasticity;
  }
  return sum > 0 ? estimated / sum : 0;
}

}  // namespace sluice
