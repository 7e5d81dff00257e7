// A recorded trace: reading it, and what a simulation does with the first requests of what it says.
#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "plan/sim.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    Workload workload = Workload::from_trace(text, "fuzz.csv");
    SimOptions options;
    options.engine.max_sequences = 4;
    options.engine.max_context = 512;
    options.pools.n_pages = 64;
    FlatCost cost;
    cost.us = 10;
    simulate(SimRoute::row({"a", "b"}), cost, workload, options);
  } catch (const Error&) {
  }
  return 0;
}
