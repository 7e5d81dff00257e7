// The planner's files: plans, hardware profiles, claims and measured rows.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "plan/catalog.h"
#include "plan/claims.h"
#include "plan/describe.h"
#include "plan/fit.h"
#include "plan/hypothetical.h"
#include "plan/search.h"

namespace {

using namespace sluice;

/// Runs what may refuse its input.
template <typename F>
void attempt(F run) {
  try {
    run();
  } catch (const Error&) {
  }
}

void price_plan(const Json& json) {
  static const ModelShape model = describe_model(*catalog_config("Meta-Llama-3.1-8B"));
  const Candidate candidate =
      price(model, placement_from_json(json, "fuzz"), {.users = 3, .weights = {}});
  if (!(candidate.token_us > 0)) __builtin_trap();
}

void price_rows(std::string_view csv) {
  int n = 0;
  SiliconCosts costs;
  for (const SiliconRow& row : read_silicon(csv, "fuzz")) {
    std::string why;
    std::optional<SiliconCost> cost = costs.of(row, why);
    if (cost && !(cost->predict(shipped_calibration()).tpot_ms > 0)) __builtin_trap();
    if (++n == 20) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  attempt([&] { price_rows(text); });
  attempt([&] { hypothetical_named(text); });
  Json json;
  try {
    json = parse_json(text, "fuzz");
  } catch (const Error&) {
    return 0;
  }
  attempt([&] { hardware_from_json(Config(json, "fuzz")); });
  attempt([&] { check_claims(json, "fuzz"); });
  attempt([&] { price_plan(json); });
  return 0;
}
