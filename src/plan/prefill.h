// Prompts that other hardware computes than decodes: its time and that of sending the cache over.
#pragma once

#include <string>

#include "plan/search.h"

namespace sluice {

struct Prefill {
  std::string plan;  // of the one prompt: its name, and
  Placement placement{};
  double compute_ms = 0;
  double cache_bytes = 0, transfer_ms = 0;

  double first_ms() const { return compute_ms + transfer_ms; }
};

/// The plan on `hardware` that computes one prompt of `demand` soonest. Nothing is sent yet.
Prefill fastest_prefill(const ModelShape& model, const Hardware& hardware, const Demand& demand);

/// Milliseconds that the cache of a prompt takes over the slower link of the two. Throws
/// kUnsupported naming a profile without a link.
double transfer_ms(const Hardware& from, const Hardware& to, double cache_bytes);

/// With the way to `decoder`, see transfer_ms().
Prefill prefill_elsewhere(const ModelShape& model, const Hardware& hardware,
                          const Hardware& decoder, const Demand& demand);

}  // namespace sluice
