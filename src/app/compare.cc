// sluice compare: the same load on real stages and on modelled ones, side by side.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <thread>

#include "app/calibrate.h"
#include "app/commands.h"
#include "app/report.h"
#include "app/runtime.h"
#include "base/error.h"
#include "kernels/kernels.h"
#include "plan/sim.h"

namespace sluice {
namespace {

struct CompareOptions {
  CompareOptions() { model.speculate = "off"; }

  ModelOptions model;
  std::string users = "1,8", host;
  int prompt = 64, output = 128, requests = 2;
  bool json = false;
};

bool parse(CompareOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(
      app, "compare", "[flags]",
      "Runs a plan on this machine and simulates it, under the same load: --users who each "
      "ask --requests times. Prints measured and predicted times side by side, and whether "
      "the scheduler formed the same batches. The prediction knows the machine only from "
      "operations measured one by one (sluice calibrate), never from a run of the model. Measuring "
      "and running take turns, five times, and medians count.",
      {"sluice compare", "sluice compare --stages 3 --users 1,8 --json",
       "sluice compare --model model.gguf --host host.json"});
  add_text(app, "--users", "N,N,...", o.users, "users at once; a row for each (default 1,8)")
      ->group("Load");
  add_integer(app, "--prompt", o.prompt, 1, 1 << 20, "tokens of a prompt (default 64)")
      ->group("Load");
  add_integer(app, "--output", o.output, 2, 1 << 20, "tokens of an answer (default 128)")
      ->group("Load");
  add_integer(app, "--requests", o.requests, 1, 10000, "of each user and round (default 2)")
      ->group("Load");
  add_name(app, "--host", "FILE", o.host,
           "a profile of sluice calibrate (default: measured now, for this model alone)")
      ->group("Prediction");
  add_model_flags(app, o.model);
  app.remove_option(app.get_option("--max-users"));  // --users says it
  add_switch(app, "--json", o.json, "print one object with a list of rows")->group("Output");
  return parse_flags(app, argc, argv);
}

class RealClock : public LoadClock {
 public:
  double now_us() const override { return sluice::now_us(); }
  void wait_until(double us) override {
    const double rest_us = us - now_us();
    if (rest_us > 0)
      std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(rest_us));
  }
};

struct Row {
  int users = 0;
  std::vector<SimReport> rounds;
  std::vector<BatchLog> logs;     // of each round
  SimReport measured, simulated;  // measured: the round with the median TPOT
  size_t n_batches = 0;
  bool same_batches = false;
};

class Comparison {
 public:
  Comparison(const CompareOptions& options, int max_users)
      : o_(options), runtime_(options.model), model_(make_model(runtime_.checkpoint())) {
    host_model_ = describe_for_host(*model_, runtime_.checkpoint(), o_.model.i8());
    check_lengths();
    if (!o_.host.empty()) read_host();
    const int64_t usual = int64_t(max_users) * (o_.prompt + o_.output + 2 * kPageTokens) * 2;
    const int64_t tokens = o_.model.cache_tokens > 0 ? o_.model.cache_tokens : usual;
    pools_.n_pages = int(std::min<int64_t>(tokens / kPageTokens, 1 << 24));
    for (const PlacedBlock& placed : model_->blocks) {
      if (placed.block->cache().kind == CacheKind::kRecurrent) {
        pools_.n_state_slots = 2 * max_users + 8;
      }
    }
    pipeline_ = std::make_unique<Pipeline>(runtime_.checkpoint(), make_model(runtime_.checkpoint()),
                                           runtime_.plan(),
                                           PipelineOptions{.i8 = o_.model.i8(),
                                                           .cache_f16 = o_.model.cache_f16(),
                                                           .pools = pools_,
                                                           .threads = runtime_.n_threads(),
                                                           .default_cores = runtime_.cores()});
  }

  /// Measuring and running take turns, so that both see the machine in the same moods.
  std::vector<Row> run(const std::vector<int32_t>& users) {
    Progress progress("compare", o_.json || o_.model.quiet);
    std::vector<HostProfile> rounds;
    std::vector<Row> rows;
    for (const int n : users) {
      rows.emplace_back().users = n;
      serve(n, 1, nullptr);  // touches code and memory once
    }
    for (int r = 0; r < kCalibrationRounds; ++r) {
      const auto update = [&](double share) { progress.update((r + share) / kCalibrationRounds); };
      if (o_.host.empty()) rounds.push_back(calibrate_once(calibration(), update));
      for (Row& row : rows) {
        row.rounds.push_back(serve(row.users, o_.requests, &row.logs.emplace_back()));
      }
      update(1);
    }
    progress.clear();
    if (o_.host.empty()) host_ = median_of(rounds);
    for (Row& row : rows) predict(row);
    return rows;
  }

  const Runtime& runtime() const { return runtime_; }

 private:
  void predict(Row& row) const {
    Workload workload = load(row.users, o_.requests);
    const HostCost cost(host_, host_model_, runtime_.plan());
    const SimRoute route = SimRoute::of(runtime_.plan(), runtime_.cores());
    BatchLog log;
    row.simulated = simulate(route, cost, workload, sim_options(row.users, &log));
    row.n_batches = log.size();
    row.same_batches = std::ranges::all_of(row.logs, [&](const BatchLog& l) { return l == log; });
    std::ranges::sort(row.rounds, {}, [](const SimReport& report) { return report.tpot_ms.p50; });
    row.measured = row.rounds[row.rounds.size() / 2];
  }

  CalibrateOptions calibration() const {
    const std::vector<int>& own = runtime_.plan().stages.front().cores;
    CalibrateOptions c;
    c.threads = own.empty() ? runtime_.n_threads() : int(own.size());
    c.cores = own.empty() ? runtime_.cores() : own;
    c.i8 = o_.model.i8();
    c.cache_f16 = o_.model.cache_f16();
    c.types = parse_types(matrix_types(host_model_));
    c.footprints = {std::max(host_model_.bytes, 1e6)};
    return c;
  }

  void check_lengths() const {
    const int64_t tokens = int64_t(o_.prompt) + o_.output;
    const auto require = [&](int64_t most, const char* what) {
      if (tokens <= most) return;
      throw UsageError(
          fmt::format("--prompt, --output: expected at most {} tokens together, {}, got {}", most,
                      what, tokens));
    };
    if (model_->max_context > 0) require(model_->max_context, "the context of this model");
    if (o_.model.cache_tokens > 0) {
      require(o_.model.cache_tokens / kPageTokens * kPageTokens, "the pages of --cache-tokens");
    }
  }

  /// A profile that the prediction cannot use is refused before anything runs.
  void read_host() {
    host_ = host_from_json(Config(parse_json(read_text(o_.host), o_.host), o_.host));
    const auto require = [&](const char* key, const auto& wanted, const auto& got) {
      if (wanted == got) return;
      throw Error(ErrorCode::kInvalidInput, "{}: {}: expected {}, as what is run, got {}", o_.host,
                  key, wanted, got);
    };
    require("isa", std::string(kernels().isa), host_.isa);
    require("threads", calibration().threads, host_.threads);
    require("compute", o_.model.compute, std::string(host_.i8 ? "i8" : "f32"));
    require("cache", std::string(o_.model.cache_f16() ? "f16" : "f32"),
            std::string(host_.cache_f16 ? "f16" : "f32"));
    HostCost(host_, host_model_, runtime_.plan());  // throws for types that were not measured
  }

  Workload load(int users, int requests) const {
    WorkloadOptions w;
    w.users = users;
    w.requests = users * requests;
    w.prompt = o_.prompt;
    w.output = o_.output;
    return Workload(w);
  }

  SimOptions sim_options(int users, BatchLog* log) const {
    SimOptions s;
    s.engine.chunk = o_.model.chunk;
    s.engine.max_sequences = users;
    s.engine.max_context = int(std::min<int64_t>(model_->max_context, 1 << 30));
    s.engine.speculation = o_.model.speculation();
    s.pools = pools_;
    s.vocab = int(model_->vocab);
    s.log = log;
    return s;
  }

  SimReport serve(int users, int requests, BatchLog* log) {
    Workload workload = load(users, requests);
    RealClock clock;
    return serve_load(*pipeline_, clock, workload, sim_options(users, log));
  }

  const CompareOptions& o_;
  Runtime runtime_;
  std::unique_ptr<Model> model_;  // only declares
  HostModel host_model_;
  HostProfile host_;
  CachePools pools_;
  std::unique_ptr<Pipeline> pipeline_;
};

double error_of(double predicted, double measured) {
  return measured > 0 ? predicted / measured - 1 : 0;
}

OrderedJson pair_to_json(double measured, double predicted) {
  return {{"measured", rounded(measured)},
          {"predicted", rounded(predicted)},
          {"error", rounded(error_of(predicted, measured))}};
}

OrderedJson row_to_json(const Row& row) {
  return {{"users", row.users},
          {"tpot_ms", pair_to_json(row.measured.tpot_ms.p50, row.simulated.tpot_ms.p50)},
          {"ttft_ms", pair_to_json(row.measured.ttft_ms.p50, row.simulated.ttft_ms.p50)},
          {"output_tok_s", pair_to_json(row.measured.output_tok_s, row.simulated.output_tok_s)},
          {"batches", row.n_batches},
          {"same_batches", row.same_batches}};
}

void print_line(int users, const char* what, double measured, double predicted) {
  fmt::print("{:>5}  {:<22}{:>14}{:>14}{:>+12.1f} %\n", users, what, short_number(measured),
             short_number(predicted), 100 * error_of(predicted, measured));
}

void print_row(const Row& row) {
  print_line(row.users, "TPOT, ms, p50", row.measured.tpot_ms.p50, row.simulated.tpot_ms.p50);
  print_line(row.users, "TTFT, ms, p50", row.measured.ttft_ms.p50, row.simulated.ttft_ms.p50);
  print_line(row.users, "output tokens/s", row.measured.output_tok_s, row.simulated.output_tok_s);
  fmt::print("{:>5}  {} batches, {}\n", row.users, row.n_batches,
             row.same_batches ? "the same in both" : "not the same in both");
}

}  // namespace

int compare_command(int argc, char** argv) {
  CompareOptions o;
  if (!parse(o, argc, argv)) return kOk;
  if (o.model.speculation() != Speculation::kOff) {
    throw UsageError("--speculate: expected off; random text has nothing to guess from");
  }
  const std::vector<int32_t> users = parse_integers(o.users, "--users");
  const int max_users = *std::max_element(users.begin(), users.end());
  if (*std::min_element(users.begin(), users.end()) < 1 || max_users > 4096) {
    throw UsageError(fmt::format("--users: expected numbers from 1 to 4096, got {}", o.users));
  }
  Comparison comparison(o, max_users);
  const Runtime& runtime = comparison.runtime();
  if (!o.json) {
    fmt::print("{}: {} threads, {} stages, compute {}\n\n{:>5}  {:<22}{:>14}{:>14}{:>14}\n",
               runtime.checkpoint().path().filename().string(), runtime.n_threads(),
               runtime.plan().stages.size(), o.model.compute, "users", "", "measured", "predicted",
               "error");
  }
  OrderedJson rows = OrderedJson::array();
  for (const Row& row : comparison.run(users)) {
    if (o.json) {
      rows.push_back(row_to_json(row));
    } else {
      print_row(row);
    }
  }
  if (o.json) {
    print_json(OrderedJson{{"model", runtime.checkpoint().path().string()},
                           {"threads", runtime.n_threads()},
                           {"stages", runtime.plan().stages.size()},
                           {"compute", o.model.compute},
                           {"rows", std::move(rows)}});
  }
  return kOk;
}

}  // namespace sluice
