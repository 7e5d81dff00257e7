// What tokens cost.
#pragma once

#include <string>

#include "serve/generation.h"

namespace sluice {

/// Per million tokens, in whatever currency the operator thinks in.
struct Price {
  double input = 0;
  double cached = 0;  // input taken from the prefix cache
  double output = 0;
  double priority = 1, flex = 1;  // factors for these service tiers

  double of(const Usage& usage, const std::string& service_tier) const {
    const double factor = service_tier == "priority" ? priority : service_tier == "flex" ? flex : 1;
    return factor / 1e6 *
           (input * double(usage.prompt_tokens - usage.cached_tokens) +
            cached * double(usage.cached_tokens) + output * double(usage.completion_tokens));
  }
};

}  // namespace sluice
