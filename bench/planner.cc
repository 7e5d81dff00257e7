// How long planning and simulating take, how much memory, and how both grow: a search over
// placements, then a full pipeline of wafers under closed load, by the real scheduler.
// Usage: bench_planner [requests (default 100000)]
#include <fmt/core.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <ctime>

#include "base/error.h"
#include "plan/hypothetical.h"
#include "plan/search.h"
#include "plan/sim.h"
#include "plan/sim_placed.h"

namespace {

using namespace sluice;

constexpr const char* kModel = "3T/150B/80/mla";
constexpr int kPrompt = 512, kOutput = 128;

double seconds_of(auto&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) / 1024;
}

/// Blocks of the model dealt to as many wafers, whether they fit or not.
Placement on_wafers(const ModelShape& model, int stages) {
  Placement placement;
  placement.plan = split_by_cost(std::vector<double>(model.blocks.size() + 1, 1.0), stages);
  placement.groups.assign(size_t(stages),
                          {.hardware = std::make_shared<const Hardware>(*find_hardware("CS-3"))});
  placement.weights = model.published;
  return placement;
}

void time_search(const ModelShape& model) {
  Demand demand{.users = 64};
  demand.weights = model.published;
  size_t n = 0;
  const double seconds =
      seconds_of([&] { n = search(model, {*find_hardware("GB300-NVL72")}, demand).size(); });
  fmt::print("search: {} placements of {} in {:.3f} s: {:.3f} s for 100\n\n", n, kModel, seconds,
             seconds / double(n) * 100);
}

void time_simulation(const ModelShape& model, int stages, int users, int requests) {
  const Placement placement = on_wafers(model, stages);
  const SimRoute route = SimRoute::devices(placement.plan);
  const PlacedCost cost(CostModel(model, placement));
  WorkloadOptions load;
  load.users = users;
  load.requests = requests;
  load.prompt = kPrompt;
  load.output = kOutput;
  SimOptions options;
  options.engine.max_sequences = users;
  options.engine.mixed_rows = options.engine.chunk;
  options.engine.speculation = Speculation::kOff;
  options.pools.n_pages = users * (kPrompt + kOutput + 2 * kPageTokens) / kPageTokens;
  SimReport report;
  const std::clock_t busy_before = std::clock();
  const double seconds = seconds_of([&] {
    Workload workload(load);
    report = simulate(route, cost, workload, options);
  });
  const double busy = double(std::clock() - busy_before) / CLOCKS_PER_SEC;
  CHECK(report.n_finished == requests);
  fmt::print("{:>7}{:>7}{:>10}{:>12}{:>9.1f}{:>9.1f}{:>14.2f}{:>10.1f}\n", stages, users, requests,
             report.batches, seconds, busy, busy / double(report.batches) * 1e6, peak_mib());
}

}  // namespace

int main(int argc, char** argv) {
  const int requests = argc > 1 ? std::atoi(argv[1]) : 100'000;
  const ModelShape model = *hypothetical_named(kModel);
  time_search(model);
  fmt::print("{:>7}{:>7}{:>10}{:>12}{:>9}{:>9}{:>14}{:>10}\n", "stages", "users", "requests",
             "batches", "wall s", "CPU s", "CPU us/batch", "peak MiB");
  for (int stages : {25, 50, 100}) time_simulation(model, stages, stages, requests / 4);
  time_simulation(model, 100, 400, requests / 4);
  time_simulation(model, 100, 100, requests);
}
