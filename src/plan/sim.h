// A simulation: the real scheduler serves a workload on modelled stages, under a virtual clock.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/options.h"
#include "plan/draft.h"
#include "plan/sim_executor.h"
#include "plan/workload.h"

namespace sluice {

/// The rows of each sequence of each batch: two runs with the same log decided alike.
using BatchLog = std::vector<std::vector<std::pair<RequestId, int>>>;

/// Devices that compute one prompt at a time, in order, and a link that sends one cache at a time.
/// Requests reach the scheduler when their cache is there.
struct PrefillPool {
  std::function<double(int prompt)> compute_us, transfer_us;
};

struct SimOptions {
  EngineOptions engine;
  CachePools pools;
  int vocab = 32768;                     // of the tokens that prompts are made of
  int n_shared = 0;                      // first tokens that all sessions share
  const PrefillPool* prefill = nullptr;  // none: the stages compute prompts
  Draft draft;             // guesses that the scheduler verifies, for executors without a model
  uint64_t seed = 1;       // of how many of them are kept
  double max_ttft_ms = 0;  // limits of a good answer; 0: none
  double max_tpot_ms = 0;
  BatchLog* log = nullptr;  // filled if given

  /// Tokens of the longest request that is served.
  int64_t most_tokens() const;
};

/// Nearest-rank percentiles; zeros without values.
struct Percentiles {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};
Percentiles percentiles(std::vector<double> values);

struct SimReport {
  int n_finished = 0;
  int n_refused = 0;  // longer than the context or the cache
  int n_dropped = 0;  // not asked for any more once the queue only grew
  /// Requests waited longer and longer, so their waiting has no value of its own: `ttft_ms`,
  /// `latency_ms` and the goodput say nothing; the others are those of a full load.
  bool saturated = false;
  Percentiles ttft_ms, tpot_ms, latency_ms;  // per request; tpot: of answers of 2 tokens or more
  double duration_s = 0;
  double output_tok_s = 0, prompt_tok_s = 0;
  double goodput_req_s = 0, good_share = 0;
  double cached_share = 0;  // of prompt tokens: taken from the prefix cache
  uint64_t batches = 0, rows = 0, preemptions = 0;
  double accepted = 1;                     // tokens per verification, on average
  double mean_waiting = 0;                 // requests that hold no cache, on average over batches
  std::vector<double> busy;                // by stage: the share of the time
  double prefill_busy = 0, link_busy = 0;  // of a prefill pool
};

class SimTrace;
/// On modelled stages. Fills `trace`, if given.
SimReport simulate(const SimRoute& route, const BatchCost& cost, Workload& workload,
                   const SimOptions& options, SimTrace* trace = nullptr);
/// On any stages: how a real pipeline is put under the same load. `options.pools` are the
/// executor's.
SimReport serve_load(Executor& executor, LoadClock& clock, Workload& workload,
                     const SimOptions& options);

}  // namespace sluice
