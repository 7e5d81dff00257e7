// sluice validate: how far the planner's predictions are from what was measured.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "app/cli.h"
#include "app/commands.h"
#include "app/options.h"
#include "app/report.h"
#include "base/error.h"
#include "plan/catalog.h"
#include "plan/describe.h"
#include "plan/fit.h"
#include "plan/wafer.h"

namespace sluice {
namespace {

constexpr double kMostConcurrency = 64;  // the bars hold up to here

struct ValidateOptions {
  std::string silicon, rows_out, fit;
  bool leave_out = false, json = false;
};

bool parse(ValidateOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(app, "validate", "[flags]",
           "Compares predictions with published measurements: bytes of caches, speeds of wafers "
           "(each predicted by a law fitted without it), and with --silicon the rows of a CSV of "
           "serving runs on GPUs, priced with the shipped constants. Errors are of predicted "
           "against measured; repeats of one operating point count once. A first-token time is "
           "predicted below 80 % load only.",
           {"sluice validate", "sluice validate --silicon rows.csv --rows-out compared.csv",
            "sluice validate --silicon rows.csv --leave-out",
            "sluice validate --silicon rows.csv --fit calibration/gpu.json"});
  add_name(app, "--silicon", "FILE", o.silicon,
           "CSV with columns id, model_path, system, backend, precision, mode, isl, osl, tp_size, "
           "..., silicon_ttft_ms, silicon_tpot_ms")
      ->group("Measured rows");
  add_name(
      app, "--rows-out", "FILE", o.rows_out,
      "write id, concurrency and both times, measured and predicted, of every row; empty where "
      "nothing is predicted")
      ->group("Measured rows");
  add_switch(app, "--leave-out", o.leave_out,
             "also refit without each model and each system in turn, and predict what was left out")
      ->group("Measured rows");
  add_name(app, "--fit", "FILE", o.fit,
           "fit the constants to the rows and write them; the rows are then judged with them")
      ->group("Measured rows");
  add_switch(app, "--json", o.json, "print one object")->group("Output");
  if (!parse_flags(app, argc, argv)) return false;
  if (o.silicon.empty() && (!o.rows_out.empty() || o.leave_out || !o.fit.empty())) {
    throw UsageError("--silicon: expected a file with rows, got none");
  }
  return true;
}

/// Errors of one metric, by label.
using Errors = std::map<std::string, std::vector<double>>;

OrderedJson to_json(const ErrorStatistics& s) {
  return {{"n", s.n},
          {"mean_absolute_percent", rounded(s.mean_absolute)},
          {"bias_percent", rounded(s.bias)},
          {"median_absolute_percent", rounded(s.median_absolute)},
          {"worst_percent", rounded(s.worst)}};
}

OrderedJson to_json(const Errors& errors) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [label, of_label] : errors) json[label] = to_json(statistics_of(of_label));
  return json;
}

/// Errors of one metric, cut in several ways.
struct Cuts {
  Errors all, by_system, by_model, by_engine, by_load;

  void add(const SiliconRow& row, double predicted, double measured) {
    const double error = predicted / measured - 1;
    all["all"].push_back(error);
    by_system[row.system].push_back(error);
    by_model[family_of(row.model)].push_back(error);
    by_engine[row.engine + (row.disaggregated ? ", split" : "")].push_back(error);
    const double c = row.concurrency;
    by_load[c <= 8    ? "up to 8 users"
            : c <= 32 ? "9 to 32 users"
                      : "33 to 64 users"]
        .push_back(error);
  }
  OrderedJson json() const {
    return {{"all", to_json(all)["all"]},
            {"by_system", to_json(by_system)},
            {"by_model", to_json(by_model)},
            {"by_engine", to_json(by_engine)},
            {"by_load", to_json(by_load)}};
  }
};

/// Judges points with the constants that `constants_for` names for each.
template <typename ConstantsFor>
std::pair<Cuts, Cuts> judge(FitInput& input, ConstantsFor constants_for) {
  std::pair<Cuts, Cuts> cuts;
  for (size_t i = 0; i < input.points.size(); ++i) {
    const SiliconRow& row = input.points[i].row;
    const SiliconPrediction p = input.costs[i].predict(constants_for(row));
    cuts.first.add(row, p.tpot_ms, row.tpot_ms);
    if (p.ttft_ms > 0 && row.ttft_ms > 0) cuts.second.add(row, p.ttft_ms, row.ttft_ms);
  }
  return cuts;
}

/// Every label's points predicted by constants fitted to the others.
OrderedJson leave_out(FitInput& input, const Calibration& start,
                      std::string (*label)(const SiliconRow&)) {
  std::map<std::string, Calibration> without;
  for (const SiliconPoint& point : input.points) without.emplace(label(point.row), start);
  for (auto& [held, constants] : without) {
    std::vector<bool> use;
    for (const SiliconPoint& point : input.points) use.push_back(label(point.row) != held);
    constants = fit_calibration(input, use, start);
  }
  auto [token, first] = judge(
      input, [&](const SiliconRow& row) -> const Calibration& { return without.at(label(row)); });
  OrderedJson json = {{"tpot", token.json()}};
  if (!first.all.empty()) json["ttft"] = first.json();
  return json;
}

void write_rows(const std::string& path, const std::vector<SiliconRow>& rows,
                const Calibration& constants, std::map<std::string, int>& not_predicted) {
  std::ofstream file(path);
  file << "id,concurrency,tpot_measured_ms,tpot_predicted_ms,ttft_measured_ms,ttft_predicted_ms\n";
  const auto cell = [](double value) { return value > 0 ? fmt::format("{:.4f}", value) : ""; };
  SiliconCosts costs;
  for (const SiliconRow& row : rows) {
    std::string why;
    SiliconPrediction p;
    if (std::optional<SiliconCost> cost = costs.of(row, why)) p = cost->predict(constants);
    if (!why.empty()) ++not_predicted[why];
    file << fmt::format("{},{},{},{},{},{}\n", row.id,
                        row.concurrency > 0 ? fmt::format("{:.0f}", row.concurrency) : "",
                        cell(row.tpot_ms), cell(p.tpot_ms), cell(row.ttft_ms), cell(p.ttft_ms));
  }
  file.flush();
  if (!file) throw Error(ErrorCode::kIo, "{}: cannot be written", path);
}

OrderedJson judge_silicon(const ValidateOptions& o) {
  for (const std::string& out : {o.rows_out, o.fit}) {
    if (out.empty()) continue;
    std::error_code error;
    if (std::filesystem::equivalent(out, o.silicon, error)) {
      throw UsageError(fmt::format("--rows-out, --fit: {} is the file that is read", out));
    }
    require_writable(out);
  }
  std::vector<SiliconRow> rows = read_silicon(read_text(o.silicon), o.silicon);
  const size_t n_rows = rows.size();
  Calibration constants = shipped_calibration();
  const bool fits = !o.fit.empty();
  std::map<std::string, int> not_predicted;
  if (!fits && !o.rows_out.empty()) write_rows(o.rows_out, rows, constants, not_predicted);
  std::vector<SiliconPoint> points = merge_repeats(fits ? rows : std::move(rows));
  const size_t n_points = points.size();
  FitInput input = fit_input(std::move(points), kMostConcurrency);
  if (input.points.empty() && (fits || o.leave_out)) {
    throw Error(ErrorCode::kInvalidInput,
                "{}: expected rows to fit (a known model and up to {:.0f} users), found none of {}",
                o.silicon, kMostConcurrency, n_rows);
  }
  if (fits) {
    constants =
        fit_calibration(input, std::vector<bool>(input.points.size(), true), uncalibrated());
    for (const SiliconPoint& point : input.points) {
      for (size_t i : point.ids) constants.rows.push_back(rows[i].id);
    }
    const OrderedJson json = calibration_to_json(
        constants, "InferenceX runs as published in ai-dynamo/aiconfigurator (Apache-2.0)");
    std::ofstream file(o.fit);
    file << json.dump(1) << '\n';
    if (!file.flush()) throw Error(ErrorCode::kIo, "{}: cannot be written", o.fit);
    if (!o.rows_out.empty()) write_rows(o.rows_out, rows, constants, not_predicted);
  }
  auto [token, first] =
      judge(input, [&](const SiliconRow&) -> const Calibration& { return constants; });
  OrderedJson json = {
      {"rows", n_rows}, {"points", n_points}, {"points_judged", input.points.size()}};
  if (!token.all.empty()) json["tpot"] = token.json();
  if (!first.all.empty()) json["ttft"] = first.json();
  if (o.leave_out) {
    json["leave_one_model_out"] =
        leave_out(input, constants, [](const SiliconRow& row) { return family_of(row.model); });
    json["leave_one_system_out"] =
        leave_out(input, constants, [](const SiliconRow& row) { return row.system; });
  }
  for (const auto& [why, n] : not_predicted) json["not_predicted"][why] = n;
  return json;
}

OrderedJson judge_memory() {
  struct Vector {
    const char* model;
    double gib;
    const char* source;
  };
  constexpr Vector kVectors[] = {{"DeepSeek-V4-Pro", 9.62, "vLLM"},
                                 {"DeepSeek-V4-Flash", 6.72, "vLLM"},
                                 {"DeepSeek-V3", 68.6, "config of DeepSeek"},
                                 {"DeepSeek-V3.2", 83.9, "config of DeepSeek"}};
  OrderedJson json = OrderedJson::array();
  for (const Vector& v : kVectors) {
    const ModelShape model = describe_model(*catalog_config(v.model));
    const double gib = cache_bytes(model, 1 << 20, CacheFormat::k16Bit) / double(1 << 30);
    json.push_back({{"model", v.model},
                    {"cache_gib_at_1048576", rounded(gib)},
                    {"published_gib", v.gib},
                    {"error_percent", rounded(100 * (gib / v.gib - 1))}});
  }
  return json;
}

OrderedJson judge_wafers() {
  std::map<std::string, std::vector<double>> by_model;
  OrderedJson points = OrderedJson::array();
  std::vector<double> all;
  for (const WaferError& e : wafer_leave_one_out()) {
    all.push_back(e.predicted / e.point.tokens_per_s - 1);
    points.push_back({{"model", e.point.model},
                      {"kind", e.point.kind},
                      {"published_tokens_per_s", e.point.tokens_per_s},
                      {"predicted_tokens_per_s", std::round(e.predicted)},
                      {"error_percent", rounded(100 * all.back())},
                      {"source", e.point.source}});
  }
  const WaferLaw law = fit_wafer(wafer_points());
  return {{"law",
           {{"fixed_us_per_token", rounded(law.fixed_us)},
            {"us_per_layer_and_token", rounded(law.layer_us)}}},
          {"leave_one_model_out", to_json(statistics_of(all))},
          {"points", points}};
}

void print_statistics(const std::string& label, const OrderedJson& s) {
  const auto number = [&](const char* key) { return s[key].get<double>(); };
  fmt::print("  {:<26}{:>6}{:>10.1f} %{:>10.1f} %{:>10.1f} %{:>8.0f} %\n", label, s["n"].get<int>(),
             number("mean_absolute_percent"), number("bias_percent"),
             number("median_absolute_percent"), number("worst_percent"));
}

void print_title(const std::string& title) {
  fmt::print("\n{:<28}{:>6}{:>12}{:>12}{:>12}{:>10}\n", title, "points", "mean |e|", "bias",
             "median |e|", "worst");
}

void print_cuts(const std::string& title, const OrderedJson& cuts) {
  print_title(title);
  print_statistics("all", cuts["all"]);
  for (const char* cut : {"by_system", "by_model", "by_engine", "by_load"}) {
    for (const auto& [label, s] : cuts[cut].items()) print_statistics(label, s);
  }
}

void print_tables(const OrderedJson& json) {
  fmt::print("{:<28}{:>14}{:>14}{:>12}\n", "Cache at 1,048,576 tokens", "GiB", "published",
             "error");
  for (const OrderedJson& row : json["memory"]) {
    fmt::print("  {:<26}{:>14.3f}{:>14.2f}{:>10.2f} %\n", row["model"].get<std::string>(),
               row["cache_gib_at_1048576"].get<double>(), row["published_gib"].get<double>(),
               row["error_percent"].get<double>());
  }
  const OrderedJson& wafers = json["wafers"];
  fmt::print("\n{:<28}{:>14}{:>14}{:>12}\n", "Wafers, fitted without it", "tokens/s", "published",
             "error");
  for (const OrderedJson& row : wafers["points"]) {
    fmt::print("  {:<26}{:>14.0f}{:>14.0f}{:>10.0f} %\n", row["model"].get<std::string>(),
               row["predicted_tokens_per_s"].get<double>(),
               row["published_tokens_per_s"].get<double>(), row["error_percent"].get<double>());
  }
  print_title("Wafers, their errors");
  print_statistics("all", wafers["leave_one_model_out"]);
  if (!json.contains("silicon")) return;
  const OrderedJson& silicon = json["silicon"];
  fmt::print("\n{} rows, {} operating points, {} judged: up to {:.0f} users, known model\n",
             silicon["rows"].get<int>(), silicon["points"].get<int>(),
             silicon["points_judged"].get<int>(), kMostConcurrency);
  if (silicon.contains("tpot")) print_cuts("Time per token", silicon["tpot"]);
  if (silicon.contains("ttft")) print_cuts("Time to first token", silicon["ttft"]);
  for (const char* held : {"leave_one_model_out", "leave_one_system_out"}) {
    if (!silicon.contains(held)) continue;
    const std::string title = held == std::string("leave_one_model_out") ? "model" : "system";
    print_cuts("Each " + title + " left out", silicon[held]["tpot"]);
  }
  if (!silicon.contains("not_predicted")) return;
  for (const auto& [why, n] : silicon["not_predicted"].items()) {
    fmt::print("Not predicted: {} rows, {}\n", n.get<int>(), why);
  }
}

}  // namespace

int validate_command(int argc, char** argv) {
  ValidateOptions o;
  if (!parse(o, argc, argv)) return kOk;
  OrderedJson json = {{"memory", judge_memory()}, {"wafers", judge_wafers()}};
  if (!o.silicon.empty()) json["silicon"] = judge_silicon(o);
  if (o.json) {
    print_json(json);
  } else {
    print_tables(json);
  }
  return kOk;
}

}  // namespace sluice
