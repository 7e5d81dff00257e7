#include "plan/prefill.h"

#include <algorithm>

#include "base/error.h"

namespace sluice {
namespace {

double link_of(const Hardware& hardware) {
  const Quantity* const link = hardware.find("link_bandwidth");
  if (link == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                "{}: link_bandwidth: missing from its profile; a cache cannot be sent without it",
                hardware.name);
  }
  return link->value;
}

}  // namespace

Prefill fastest_prefill(const ModelShape& model, const Hardware& hardware, const Demand& demand) {
  Demand alone{.users = 1, .prompt = demand.prompt, .output = demand.output, .fastest = true};
  alone.weights = demand.weights;
  alone.cache = demand.cache;
  alone.compute_bits = demand.compute_bits;
  std::vector<Candidate> all = search(model, {hardware}, alone);
  const auto first = std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(!a.fault.empty(), a.first_ms) < std::pair(!b.fault.empty(), b.first_ms);
  });
  return {.plan = first->name,
          .placement = std::move(first->placement),
          .compute_ms = first->first_ms,
          .cache_bytes = cache_bytes(model, demand.prompt, demand.cache)};
}

double transfer_ms(const Hardware& from, const Hardware& to, double cache_bytes) {
  return cache_bytes / std::min(link_of(from), link_of(to)) * 1e3;
}

Prefill prefill_elsewhere(const ModelShape& model, const Hardware& hardware,
                          const Hardware& decoder, const Demand& demand) {
  Prefill prefill = fastest_prefill(model, hardware, demand);
  prefill.transfer_ms = transfer_ms(hardware, decoder, prefill.cache_bytes);
  return prefill;
}

}  // namespace sluice
