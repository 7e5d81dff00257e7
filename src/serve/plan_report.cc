#include "serve/plan_report.h"

namespace sluice {
namespace {

Json stages_json(const EngineStats& stats) {
  Json stages = Json::array();
  for (const StageTiming& stage : stats.stages) {
    stages.push_back({{"compute_us", stage.compute_us},
                      {"sync_us", stage.sync_us},
                      {"wire_us", stage.wire_us},
                      {"idle_us", stage.idle_us},
                      {"joins", stage.joins}});
  }
  return stages;
}

}  // namespace

Json plan_report(const std::string& model, const Json& plan, const EngineStats& stats) {
  const Json counters = {{"batches", stats.batches},
                         {"rows", stats.rows},
                         {"prompt_tokens", stats.prompt_tokens},
                         {"cached_tokens", stats.cached_tokens},
                         {"generated_tokens", stats.generated_tokens},
                         {"drafted", stats.drafted},
                         {"accepted", stats.accepted},
                         {"finished", stats.finished},
                         {"cancelled", stats.cancelled},
                         {"failed", stats.failed},
                         {"preemptions", stats.preemptions},
                         {"running", stats.n_running},
                         {"waiting", stats.n_waiting},
                         {"pages", stats.n_pages},
                         {"free_pages", stats.n_free_pages},
                         {"prefix_pages", stats.n_cached_pages}};
  return {{"model", model}, {"plan", plan}, {"stages", stages_json(stats)}, {"counters", counters}};
}

}  // namespace sluice
