// sluice simulate: the real scheduler on modelled stages, under a virtual clock.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <optional>

#include "app/calibrate.h"
#include "app/cli.h"
#include "app/commands.h"
#include "app/options.h"
#include "app/plan_input.h"
#include "app/report.h"
#include "app/runtime.h"
#include "base/error.h"
#include "plan/first_token.h"
#include "plan/host.h"
#include "plan/prefill.h"
#include "plan/search.h"
#include "plan/sim.h"
#include "plan/sim_placed.h"
#include "plan/sim_trace.h"

namespace sluice {
namespace {

constexpr int kMostTokens = 1 << 24;
constexpr size_t kTraceSpans = 200'000;

struct SimulateOptions {
  // Stages
  std::string host, model, plan;
  bool split_cores = false;
  int n_stages = 1;
  float stage_us = 0, row_us = 0, hop_us = 0, guess_us = 0;
  // Load
  std::string workload;
  float rate = 0;
  int users = 0, requests = 1000;
  int prompt = 512, output = 128, turns = 1, turn_prompt = 64, n_shared = 0;
  float spread = 0, think_s = 0;
  uint64_t seed = 1;
  // Serving
  int max_users = 0, chunk = 0, cache_tokens = 0, max_context = 0;
  std::string draft;
  bool no_prefix_cache = false;
  float max_ttft_ms = 0, max_tpot_ms = 0;
  // Output
  std::string trace;
  bool json = false;
};

/// Those whose guesses are rows of one batch.
std::vector<std::string> drafts_to_verify() {
  std::vector<std::string> names = draft_names();
  std::erase_if(names, [](const std::string& name) { return draft_named(name).fills_pipe; });
  return names;
}

/// Of the flag or field `where`. Throws, with what to do instead, if no scheduler follows it.
Draft draft_to_verify(const std::string& name, const std::string& where) {
  const std::vector<std::string> known = drafts_to_verify(), priced = draft_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return draft_named(name);
  const bool is_priced = std::find(priced.begin(), priced.end(), name) != priced.end();
  throw Error(ErrorCode::kInvalidInput, "{}: expected one of {}, got {}{}", where,
              fmt::join(known, ", "), name,
              is_priced
                  ? ", which `sluice plan` prices but the scheduler cannot follow: it gives a "
                    "user one batch at a time; --draft none simulates without it"
                  : "");
}

void add_load_flags(CLI::App& app, SimulateOptions& o) {
  const char* const group = "Load (one of the first three)";
  CLI::Option* rate = add_number(app, "--rate", o.rate, 1e-6f, 1e6f,
                                 "sessions per second that begin at random (Poisson)");
  CLI::Option* users = add_integer(app, "--users", o.users, 1, 1 << 20,
                                   "users who ask again as soon as they have their answer");
  CLI::Option* file =
      add_name(app, "--workload", "FILE", o.workload,
               "a recorded trace: CSV with the columns arrival_s, prompt_tokens, output_tokens and "
               "perhaps session; prompts of a session begin alike");
  rate->group(group)->excludes(users)->excludes(file);
  users->group(group)->excludes(file);
  file->group(group);
  const auto integer = [&](const char* name, int& value, int low, int high, const char* help) {
    CLI::Option* const option = add_integer(app, name, value, low, high, help);
    return option->group(group)->excludes(file);
  };
  integer("--requests", o.requests, 1, 10'000'000, "in all (default 1000)");
  integer("--prompt", o.prompt, 1, kMostTokens, "tokens of a prompt (default 512)");
  integer("--output", o.output, 1, kMostTokens, "tokens of an answer (default 128)");
  add_number(app, "--spread", o.spread, 0, 10,
             "standard deviation of both over their means; log-normal (default 0)")
      ->group(group)
      ->excludes(file);
  CLI::Option* const turns =
      integer("--turns", o.turns, 1, 10'000,
              "requests per session; each prompt begins with all that was said (default 1)");
  integer("--turn-prompt", o.turn_prompt, 1, kMostTokens,
          "with --turns: new tokens of each further prompt (default 64)")
      ->needs(turns);
  add_number(app, "--think-s", o.think_s, 0, 1e6f,
             "with --turns: seconds between an answer and the next turn (default 0)")
      ->group(group)
      ->excludes(file)
      ->needs(turns);
  add_integer(app, "--shared", o.n_shared, 0, kMostTokens, "first tokens that all sessions share")
      ->group(group);
  add_seed(app, "--seed", o.seed, "the same seed gives the same run (default 1)")->group(group);
}

void add_stage_flags(CLI::App& app, SimulateOptions& o) {
  const char* const stages = "Stages";
  CLI::Option* number = add_integer(app, "--stages", o.n_stages, 1, 4096,
                                    "in a row; each a device of its own unless --host is given");
  number->group(stages);
  CLI::Option* host = add_name(app, "--host", "FILE", o.host,
                               "this machine, as measured by `sluice calibrate`; with --model");
  host->group(stages);
  add_text(app, "-m,--model", "PATH", o.model, "as for `sluice run`; only looked at")
      ->group(stages)
      ->needs(host);
  CLI::Option* plan = add_name(app, "--plan", "FILE", o.plan,
                               "a placement on published hardware, from `sluice plan -o`; with "
                               "--host: which blocks are on which stage and cores");
  plan->group(stages)->excludes(number);
  add_switch(app, "--split-cores", o.split_cores, "each stage has its own share of the threads")
      ->group(stages)
      ->needs(host);
  const auto time = [&](const char* name, float& value, const char* help) {
    CLI::Option* const option = add_number(app, name, value, 0, 1e9f, help);
    return option->group(stages)->excludes(host)->excludes(plan);
  };
  time("--stage-us", o.stage_us, "microseconds of a stage per batch");
  time("--row-us", o.row_us, "and for each row of the batch (default 0)");
  time("--hop-us", o.hop_us, "from one stage to the next (default 0)");
  CLI::Option* const draft = add_name(
      app, "--draft", fmt::format("{}", fmt::join(drafts_to_verify(), "|")), o.draft,
      "speculation: the scheduler verifies so many guesses at a time, of which as many are "
      "kept as was published (default: the plan's, or none); not with --host");
  draft->group(stages);
  time("--guess-us", o.guess_us, "of a guess of --draft (default 0)")->needs(draft);
}

void add_serving_flags(CLI::App& app, SimulateOptions& o) {
  const char* const serving = "Serving";
  add_integer(app, "--max-users", o.max_users, 1, 1 << 20,
              "requests served at once (default: --users, or 4 per stage and at least 64)")
      ->group(serving);
  add_integer(app, "--chunk", o.chunk, 1, 1 << 20,
              "most rows per batch (default: 8192 on the hardware of --plan, otherwise 512)")
      ->group(serving);
  add_integer(app, "--cache-tokens", o.cache_tokens, 1, 1 << 30,
              "tokens that the cache holds (default: enough for --max-users)")
      ->group(serving);
  add_integer(app, "--max-context", o.max_context, 1, 1 << 30, "most tokens of a request")
      ->group(serving);
  add_switch(app, "--no-prefix-cache", o.no_prefix_cache, "every prompt is computed in full")
      ->group(serving);
  add_number(app, "--max-ttft-ms", o.max_ttft_ms, 0, 1e9f, "a later first token is not good")
      ->group(serving);
  add_number(app, "--max-tpot-ms", o.max_tpot_ms, 0, 1e9f, "more time per token is not good")
      ->group(serving);
}

bool parse(SimulateOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(app, "simulate", "--plan FILE|--host FILE|--stage-us T [load] [flags]",
           "Serves a load with the scheduler that the engine runs, on stages whose time is "
           "modelled, under a virtual clock. Reports the time to the first token (TTFT), per "
           "further token (TPOT) and per request, how busy each stage is, what the prefix cache "
           "saved, and writes a trace that shows batches on their way through the stages "
           "(ui.perfetto.dev). Where requests wait longer and longer it says so instead of a "
           "time that would depend on how long the run is.",
           {"sluice simulate --stages 80 --stage-us 14 --hop-us 3 --users 80",
            "sluice plan Kimi-K3 --on CS-3 --users 8 --draft dspark-7 -o plan.json",
            "sluice simulate --plan plan.json --users 8 --trace trace.json",
            "sluice simulate --host host.json --model model.gguf --rate 0.1 --turns 5",
            "sluice simulate --stages 8 --stage-us 300 --workload day.csv --json"});
  add_stage_flags(app, o);
  add_load_flags(app, o);
  add_serving_flags(app, o);
  add_name(app, "--trace", "FILE", o.trace, "write a trace for Perfetto")->group("Output");
  add_switch(app, "--json", o.json, "print one object")->group("Output");
  if (!parse_flags(app, argc, argv)) return false;
  if (o.host.empty() && o.plan.empty() && o.stage_us + o.row_us <= 0) {
    throw UsageError("--stage-us: expected the time of a stage (or --plan or --host), got none");
  }
  if (!o.draft.empty() && !o.host.empty()) {
    throw UsageError(
        "--draft: cannot be used with --host: this machine's engine guesses from the text itself, "
        "and simulated texts have none; --plan or --stage-us take a draft");
  }
  if (o.rate == 0 && o.users == 0 && o.workload.empty()) o.users = 1;
  return true;
}

/// Stages and what they cost.
struct Stages {
  SimRoute route;
  std::unique_ptr<BatchCost> cost;
  Draft draft;
  std::optional<PrefillPool> prefill;
  // What the cost looks at:
  HostProfile host;
  HostModel model;
};

Workload make_workload(const SimulateOptions& o) {
  if (!o.workload.empty()) return Workload::from_trace(read_text(o.workload), o.workload);
  WorkloadOptions w;
  w.requests = o.requests;
  w.rate = o.rate;
  w.users = std::max(o.users, 1);
  w.prompt = o.prompt;
  w.output = o.output;
  w.spread = o.spread;
  w.turns = o.turns;
  w.turn_prompt = o.turn_prompt;
  w.think_us = double(o.think_s) * 1e6;
  w.seed = o.seed;
  return Workload(w);
}

/// What is served at once is held in memory, token by token.
void check_size(const Workload& workload, int max_sequences, int n_requests) {
  constexpr int64_t kMostAtOnce = int64_t{1} << 28;
  const int64_t longest = workload.longest();
  if (longest > kMostTokens) {
    throw UsageError(
        fmt::format("--prompt, --output, --turns: expected requests of at most {} tokens, the "
                    "longest may have {}",
                    kMostTokens, longest));
  }
  const int64_t at_once = longest * std::min(max_sequences, n_requests);
  if (at_once > kMostAtOnce) {
    throw UsageError(fmt::format(
        "--users, --max-users: expected at most {} tokens served at once, got {} of {} requests",
        kMostAtOnce, at_once, std::min(max_sequences, n_requests)));
  }
}

SimOptions make_options(const SimulateOptions& o, const Workload& workload, const Stages& stages) {
  SimOptions s;
  const bool on_accelerators = o.host.empty() && !o.plan.empty();
  if (on_accelerators) s.engine.chunk = kPromptChunk;
  if (o.chunk > 0) s.engine.chunk = o.chunk;
  if (stages.prefill) {
    // What was sent takes no rows, and a prompt is computed whole: its prefix is not looked for.
    s.prefill = &*stages.prefill;
    s.engine.chunk =
        std::max(s.engine.chunk, int(std::min<int64_t>(workload.longest(), kMostTokens)));
  }
  if (on_accelerators) s.engine.mixed_rows = s.engine.chunk;
  s.engine.max_sequences = o.max_users > 0 ? o.max_users
                           : o.users > 0   ? o.users
                                           : std::max(64, 4 * stages.route.n_servers);
  check_size(workload, s.engine.max_sequences, workload.remaining());
  s.engine.max_context = o.max_context;
  s.engine.prefix_cache = !o.no_prefix_cache && !stages.prefill;
  s.engine.speculation = Speculation::kOff;
  const int64_t tokens = o.cache_tokens > 0
                             ? o.cache_tokens
                             : (workload.longest() + 2 * kPageTokens) * s.engine.max_sequences;
  constexpr int64_t kMostPages = 1 << 25;
  s.pools.n_pages = int(std::min((tokens + kPageTokens - 1) / kPageTokens, kMostPages));
  for (const HostPart& block : stages.model.blocks) {
    if (block.state_floats > 0) s.pools.n_state_slots = 2 * s.engine.max_sequences + 8;
  }
  s.draft = stages.draft;
  s.seed = o.seed;
  s.n_shared = o.n_shared;
  s.max_ttft_ms = o.max_ttft_ms;
  s.max_tpot_ms = o.max_tpot_ms;
  return s;
}

OrderedJson percentiles_to_json(const Percentiles& p, bool is_known) {
  if (!is_known) return nullptr;
  return {{"mean", rounded(p.mean)},
          {"p50", rounded(p.p50)},
          {"p90", rounded(p.p90)},
          {"p99", rounded(p.p99)}};
}

OrderedJson report_to_json(const SimReport& r, const SimRoute& route, bool prefill) {
  const bool known = !r.saturated;
  OrderedJson busy = OrderedJson::array();
  for (size_t s = 0; s < r.busy.size(); ++s) {
    busy.push_back({{"stage", route.stages[s]}, {"busy", rounded(r.busy[s])}});
  }
  OrderedJson json = {{"saturated", r.saturated},
                      {"requests", r.n_finished},
                      {"refused", r.n_refused},
                      {"dropped", r.n_dropped},
                      {"ttft_ms", percentiles_to_json(r.ttft_ms, known)},
                      {"tpot_ms", percentiles_to_json(r.tpot_ms, true)},
                      {"latency_ms", percentiles_to_json(r.latency_ms, known)},
                      {"duration_s", rounded(r.duration_s)},
                      {"output_tok_s", rounded(r.output_tok_s)},
                      {"prompt_tok_s", rounded(r.prompt_tok_s)},
                      {"goodput_req_s", known ? OrderedJson(rounded(r.goodput_req_s)) : nullptr},
                      {"good_share", known ? OrderedJson(rounded(r.good_share)) : nullptr},
                      {"cached_share", rounded(r.cached_share)},
                      {"batches", r.batches},
                      {"rows", r.rows},
                      {"preemptions", r.preemptions},
                      {"tokens_per_verification", rounded(r.accepted)},
                      {"mean_waiting", rounded(r.mean_waiting)},
                      {"stages", std::move(busy)}};
  if (prefill) {
    json["prefill"] = {{"busy", rounded(r.prefill_busy)}, {"link_busy", rounded(r.link_busy)}};
  }
  return json;
}

void print_times(const char* what, const Percentiles& p, bool is_known) {
  if (!is_known) {
    fmt::print("{:<28}{:>12}\n", what, "saturated");
    return;
  }
  fmt::print("{:<28}{:>12}{:>12}{:>12}{:>12}\n", what, short_number(p.mean), short_number(p.p50),
             short_number(p.p90), short_number(p.p99));
}

void print_report(const SimReport& r, const SimRoute& route, const SimulateOptions& o) {
  const bool known = !r.saturated;
  fmt::print("{:<28}{:>12}{:>12}{:>12}{:>12}\n", "ms", "mean", "p50", "p90", "p99");
  print_times("time to first token", r.ttft_ms, known);
  print_times("per further token", r.tpot_ms, true);
  print_times("per request", r.latency_ms, known);
  fmt::print("\n{} requests in {} s: {} output tokens/s, {} prompt tokens/s\n", r.n_finished,
             short_number(r.duration_s), short_number(r.output_tok_s),
             short_number(r.prompt_tok_s));
  if (known && (o.max_ttft_ms > 0 || o.max_tpot_ms > 0)) {
    fmt::print("goodput {} requests/s: {:.1f} % keep the limits\n", short_number(r.goodput_req_s),
               100 * r.good_share);
  }
  fmt::print(
      "{} batches of {} rows on average, {:.1f} % of prompts from the cache, {} preemptions\n",
      r.batches, short_number(r.batches > 0 ? double(r.rows) / double(r.batches) : 0),
      100 * r.cached_share, r.preemptions);
  if (r.accepted > 1) fmt::print("{:.2f} tokens per verification\n", r.accepted);
  if (r.n_refused > 0) {
    fmt::print("{} requests refused: longer than the context or the cache\n", r.n_refused);
  }
  if (r.saturated) {
    fmt::print("saturated: requests wait longer the later they come{}{}\n",
               r.mean_waiting < 0.5
                   ? ""
                   : fmt::format("; {} waited on average", short_number(r.mean_waiting)),
               r.n_dropped > 0 ? fmt::format(", the last {} were not served", r.n_dropped) : "");
  }
  const auto [least, most] = std::minmax_element(r.busy.begin(), r.busy.end());
  fmt::print("stages busy: {:.1f} % ({}) to {:.1f} % ({}) of the time\n", 100 * *least,
             route.stages[size_t(least - r.busy.begin())], 100 * *most,
             route.stages[size_t(most - r.busy.begin())]);
}

void write_trace(const std::string& path, const SimTrace& trace, const SimRoute& route) {
  std::ofstream out(path, std::ios::binary);
  trace.write(out, route);
  out.close();
  if (!out) throw Error(ErrorCode::kIo, "{}: cannot be written", path);
  if (trace.is_cut()) {
    fmt::print(stderr, "sluice: note: {}: only the first {} spans\n", path, trace.limit());
  }
}

void make_host_stages(const SimulateOptions& o, Stages& stages) {
  stages.host = host_from_json(Config(parse_json(read_text(o.host), o.host), o.host));
  ModelOptions m;
  m.model = o.model;
  m.plan = o.plan;
  m.n_stages = o.n_stages;
  m.n_threads = stages.host.threads;
  m.split_cores = o.split_cores;
  const Runtime runtime(m);
  const std::unique_ptr<Model> model = make_model(runtime.checkpoint());
  stages.model = describe_for_host(*model, runtime.checkpoint(), stages.host.i8);
  stages.route = SimRoute::of(runtime.plan(), runtime.cores());
  stages.cost = std::make_unique<HostCost>(stages.host, stages.model, runtime.plan());
}

/// Prompts are computed by the placement `json`, and their caches sent to the one that decodes.
PrefillPool prefill_pool(const Json& json, const std::string& what, const ModelShape& model,
                         const Placement& decoder) {
  Placement placement = placement_from_json(json, what);
  const std::shared_ptr<const Hardware> from = placement.groups.back().hardware;
  const std::shared_ptr<const Hardware> to = decoder.groups.front().hardware;
  transfer_ms(*from, *to, 0);  // throws if one has no link
  const auto cost = std::make_shared<const CostModel>(model, std::move(placement));
  const CacheFormat cache = decoder.cache;
  return {.compute_us = [cost](int prompt) { return first_token_us(*cost, prompt); },
          .transfer_us =
              [=](int prompt) {
                return 1e3 * transfer_ms(*from, *to, cache_bytes(cost->model(), prompt, cache));
              }};
}

/// What `sluice plan -o` wrote: model and hardware are named in it.
void make_placed_stages(const SimulateOptions& o, Stages& stages) {
  const Json json = parse_json(read_text(o.plan), o.plan);
  const Config config(json, o.plan);
  const std::string name = config.text("model");
  stages.draft = o.draft.empty() ? draft_to_verify(config.text("draft", "none"), o.plan + ": draft")
                                 : draft_to_verify(o.draft, "--draft");
  const Placement placement = placement_from_json(json, o.plan);
  stages.route = SimRoute::devices(placement.plan);
  const ModelShape model = find_model(name).shape;
  if (config.has("prefill")) {
    const Config prefill = config.object("prefill");
    stages.prefill = prefill_pool(prefill.json(), prefill.what(), model, placement);
  }
  stages.cost =
      std::make_unique<PlacedCost>(CostModel(model, placement), stages.prefill.has_value());
}

void make_flat_stages(const SimulateOptions& o, Stages& stages) {
  std::vector<std::string> names;
  for (int s = 0; s < o.n_stages; ++s) names.push_back(fmt::format("stage {}", s));
  stages.route = SimRoute::row(std::move(names));
  auto cost = std::make_unique<FlatCost>();
  cost->us = o.stage_us;
  cost->us_per_row = o.row_us;
  cost->link_us = o.hop_us;
  cost->guess_us = o.guess_us;
  if (!o.draft.empty()) stages.draft = draft_to_verify(o.draft, "--draft");
  stages.cost = std::move(cost);
}

}  // namespace

int simulate_command(int argc, char** argv) {
  SimulateOptions o;
  if (!parse(o, argc, argv)) return kOk;
  if (!o.trace.empty()) require_writable(o.trace);
  Stages stages;
  if (!o.host.empty()) {
    make_host_stages(o, stages);
  } else if (!o.plan.empty()) {
    try {
      make_placed_stages(o, stages);
    } catch (const Error& error) {
      const std::string message = error.what();
      if (message.starts_with(o.plan)) throw;
      throw Error(error.code(), "{}: {}", o.plan, message);
    }
  } else {
    make_flat_stages(o, stages);
  }
  const SimRoute& route = stages.route;
  Workload workload = make_workload(o);
  const SimOptions options = make_options(o, workload, stages);
  SimTrace trace(kTraceSpans);
  const SimReport report =
      simulate(route, *stages.cost, workload, options, o.trace.empty() ? nullptr : &trace);
  if (report.n_finished == 0 && report.n_refused > 0) {
    throw Error(ErrorCode::kResource,
                "no request is served: all {} have more tokens than the {} that context and cache "
                "hold",
                report.n_refused, options.most_tokens());
  }
  if (!o.trace.empty()) write_trace(o.trace, trace, route);
  if (o.json) {
    print_json(report_to_json(report, route, stages.prefill.has_value()));
  } else {
    print_report(report, route, o);
    if (stages.prefill) {
      fmt::print("prompts elsewhere, one at a time and whole: busy {:.1f} %, the link {:.1f} %\n",
                 100 * report.prefill_busy, 100 * report.link_busy);
    }
  }
  return kOk;
}

}  // namespace sluice
