#include "plan/phase.h"

#include <algorithm>
#include <cmath>

#include "plan/hypothetical.h"
#include "plan/search.h"

namespace sluice {
namespace {

constexpr double kLeastContext = 1024, kMostContext = 1 << 20;
constexpr double kLeastSize = 1e10, kMostSize = 2.4e13;

std::vector<double> even_in_logs(double low, double high, int steps) {
  std::vector<double> values;
  for (int i = 0; i < steps; ++i) {
    values.push_back(low * std::pow(high / low, double(i) / (steps - 1)));
  }
  return values;
}

}  // namespace

std::vector<double> phase_contexts(int steps) {
  return even_in_logs(kLeastContext, kMostContext, steps);
}
std::vector<double> phase_sizes(int steps) { return even_in_logs(kLeastSize, kMostSize, steps); }

PhasePoint phase_point(const PhaseQuestion& question, const Hardware& hardware, double context,
                       double parameters) {
  const ModelShape model = hypothetical_model(parameters, parameters * question.active,
                                              int(question.layers), question.attention);
  const int compute_bits = compute_bits_for(question.weights);
  PhasePoint point{.context = context, .parameters = parameters};
  const double bytes = weights_bytes(model, question.weights) +
                       question.users * cache_bytes(model, context, CacheFormat::k16Bit);
  point.devices = devices_for(hardware, bytes).value;
  const bool one_by_one = hardware.family == "wafer" || hardware.family == "sram";
  const double group = one_by_one ? 1 : std::min(double(hardware.devices_per_node), point.devices);
  const double stages = std::ceil(point.devices / group);
  Placement placement{.weights = question.weights, .compute_bits = compute_bits};
  placement.plan = split_by_cost(std::vector<double>(model.blocks.size() + 1, 1), 1);
  placement.groups = {
      {.hardware = std::make_shared<const Hardware>(hardware), .tensor = int(group)}};
  const CostModel cost(model, placement);
  // Stages one after the other take what one stage with everything takes, and the hops.
  const double batches = std::clamp(stages, 1.0, question.users);
  const BatchShape batch = decode_shape(question.users / batches, context);
  const double latency = cost.latency_us(batch);
  const Quantity* const hop = hardware.find("hop_latency");
  const double hops_us = stages > 1 && hop != nullptr ? stages * hop->value * 1e6 : 0;
  const double round = std::max(latency + hops_us, batches * latency / stages);
  point.user_tokens_per_s = 1e6 / round;
  if (const Quantity* const usd = hardware.find("usd_per_hour")) {
    point.usd_per_mtok =
        usd->value * point.devices / (3600 * question.users * point.user_tokens_per_s / 1e6);
  }
  return point;
}

}  // namespace sluice
