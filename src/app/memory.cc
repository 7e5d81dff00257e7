// sluice memory: the bytes that a model needs, for weights and for cache, before there is hardware.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>

#include "app/cli.h"
#include "app/commands.h"
#include "app/plan_input.h"
#include "app/report.h"
#include "base/error.h"
#include "plan/catalog.h"
#include "plan/hardware.h"

namespace sluice {
namespace {

struct MemoryOptions {
  std::string model, weights, on, cache = "bf16";
  int context = 4096, users = 1;
  bool by_layer = false, list = false, json = false;
};

bool parse(MemoryOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(
      app, "memory", "MODEL [flags]",
      "Counts the bytes that a model needs, from its config alone: of the weights, of the cache "
      "per token and of the fixed state per sequence, for attention, windows, latent and "
      "compressed attention, indexers and recurrent states alike. MODEL is a name of the "
      "catalogue (--list), a config.json, or a model on disk; of a model on disk that the "
      "engine runs, the bytes are those that the engine allocates.",
      {"sluice memory DeepSeek-V4-Pro --context 1048576",
       "sluice memory Kimi-K3 --users 80 --context 96300 --weights 4bit --on CS-3",
       "sluice memory path/to/config.json --cache fp8 --by-layer --json"});
  add_text(app, "MODEL", "", o.model,
           "a name, a config.json, a folder, a .gguf file, or e.g. 3T/150B/80/mla (see plan)");
  add_integer(app, "--context", o.context, 1, 1 << 30, "positions per user (default 4096)")
      ->group("Load");
  add_integer(app, "--users", o.users, 1, 1 << 24, "sequences at a time (default 1)")
      ->group("Load");
  add_formats(app, o.weights, o.cache);
  add_name(app, "--on", "HARDWARE", o.on,
           "also the devices that hold it, e.g. CS-3, B200, GB300, EPYC; of each only the usable "
           "part of its memory counts")
      ->group("Load");
  add_switch(app, "--by-layer", o.by_layer, "also per kind of block")->group("Output");
  add_switch(app, "--list", o.list, "list the catalogue")->group("Output");
  add_switch(app, "--json", o.json, "print one object; bytes are exact")->group("Output");
  if (!parse_flags(app, argc, argv)) return false;
  if (o.model.empty() && !o.list)
    throw UsageError("MODEL: expected a model, got none; --list shows names");
  return true;
}

struct Total {
  int blocks = 0;
  double weights = 0, cache_per_token = 0, state = 0, cache = 0;

  void add(const PartShape& part, const WeightFormat& weight, CacheFormat cache_format,
           double positions) {
    ++blocks;
    weights += weights_bytes(part, weight);
    cache_per_token += cache_bytes_per_token(part, cache_format);
    state += state_bytes(part, cache_format);
    cache += cache_bytes(part, positions, cache_format);
  }
};

/// Whole numbers without a fraction as long as doubles hold them exactly.
OrderedJson count(double value) {
  if (value < 9e15 && std::floor(value) == value) return int64_t(value);
  return value;
}

std::map<std::string, Total> by_kind(const ModelShape& model, const WeightFormat& weight,
                                     CacheFormat cache, double positions) {
  std::map<std::string, Total> kinds;
  for (const PartShape& part : model.blocks) kinds[part.kind].add(part, weight, cache, positions);
  kinds["embedding"].add(model.embedding, weight, cache, positions);
  PartShape head = model.head;
  if (model.tied) head.matrix = 0;
  kinds["head"].add(head, weight, cache, positions);
  return kinds;
}

void print_table(const OrderedJson& json, const std::map<std::string, Total>& kinds,
                 bool by_layer) {
  const auto bytes = [&](const char* key) { return bytes_text(json[key].get<double>()); };
  fmt::print("{}: {:.4g} B parameters, {:.4g} B active, {} layers\nSource: {}\n\n",
             json["model"].get<std::string>(), json["parameters"].get<double>() / 1e9,
             json["active_parameters"].get<double>() / 1e9, json["layers"].get<int>(),
             json["source"].get<std::string>());
  fmt::print("Weights ({})\n  {:<38}{:>14}\n", json["weights_format"].get<std::string>(), "all",
             bytes("weights_bytes"));
  if (json["draft_weights_bytes"].get<double>() > 0) {
    fmt::print("  {:<38}{:>14}\n", "prediction layers, not in the sum",
               bytes("draft_weights_bytes"));
  }
  fmt::print(
      "Cache ({})\n  {:<38}{:>14}\n  {:<38}{:>14}\n  {:<38}{:>14}\n",
      json["cache_format"].get<std::string>(), "per token", bytes("cache_bytes_per_token"),
      "fixed per sequence", bytes("state_bytes_per_sequence"),
      fmt::format("{} users x {} tokens", json["users"].get<int>(), json["context"].get<int>()),
      bytes("cache_bytes"));
  fmt::print("Total\n  {:<38}{:>14}\n", "", bytes("total_bytes"));
  if (by_layer) {
    fmt::print("\n{:<20}{:>7}{:>14}{:>14}{:>14}\n", "Block", "count", "weights", "cache/token",
               "fixed");
    for (const auto& [kind, t] : kinds) {
      fmt::print("{:<20}{:>7}{:>14}{:>14}{:>14}\n", kind, t.blocks, bytes_text(t.weights),
                 bytes_text(t.cache_per_token), bytes_text(t.state));
    }
  }
  if (const auto on = json.find("on"); on != json.end()) {
    const auto number = [&](const char* key) { return (*on)[key].get<double>(); };
    fmt::print("\nDevices: {:.0f} x {} ({:.0f} to {:.0f}), {} of each\n", number("devices"),
               (*on)["hardware"].get<std::string>(), number("devices_best"),
               number("devices_worst"), bytes_text(number("usable_bytes")));
    for (const OrderedJson& input : (*on)["inputs"]) {
      fmt::print("  {}, {}: {}\n", input["number"].get<std::string>(),
                 input["kind"].get<std::string>(), input["source"].get<std::string>());
    }
  }
  for (const OrderedJson& what : json["not_counted"]) {
    fmt::print("Not counted: {}\n", what.get<std::string>());
  }
}

OrderedJson report(const MemoryOptions& o, const FoundModel& found, const WeightFormat& format,
                   CacheFormat cache_format) {
  const ModelShape& model = found.shape;
  Total sum;
  for (const PartShape& part : model.blocks) sum.add(part, format, cache_format, o.context);
  const bool as_packed = found.weights >= 0 && o.weights.empty();
  const double weights = as_packed ? found.weights : std::ceil(weights_bytes(model, format));
  const double cache = std::ceil(o.users * cache_bytes(model, o.context, cache_format));
  double draft = 0;
  for (const PartShape& part : model.draft) draft += weights_bytes(part, format);
  return {{"model", model.name},
          {"source", model.source},
          {"layers", model.n_layers},
          {"parameters", count(model.parameters())},
          {"active_parameters", count(model.active_parameters())},
          {"weights_format", as_packed ? "as the engine keeps them" : format.name},
          {"cache_format", o.cache},
          {"context", o.context},
          {"users", o.users},
          {"weights_bytes", count(weights)},
          {"draft_weights_bytes", count(std::ceil(draft))},
          {"cache_bytes_per_token", count(sum.cache_per_token)},
          {"state_bytes_per_sequence", count(sum.state)},
          {"cache_bytes", count(cache)},
          {"total_bytes", count(weights + cache)},
          {"runs_here", model.runs},
          {"not_counted", left_out(model, o.weights.empty() && !as_packed)}};
}

/// How many devices hold it, and on whose word.
OrderedJson report_devices(const Hardware& hardware, double bytes) {
  const DeviceCount n = devices_for(hardware, bytes);
  OrderedJson json = {{"hardware", hardware.name},
                      {"devices", count(n.value)},
                      {"devices_best", count(n.best)},
                      {"devices_worst", count(n.worst)}};
  double usable = 1;
  for (const char* number : {"memory_bytes", "usable_memory"}) {
    const Quantity& q = *hardware.find(number);
    usable *= q.value;
    json["inputs"].push_back({{"number", number},
                              {"value", q.value},
                              {"low", q.low},
                              {"high", q.high},
                              {"unit", q.unit},
                              {"kind", q.kind},
                              {"source", q.source}});
  }
  json["usable_bytes"] = count(std::floor(usable));
  return json;
}

}  // namespace

int memory_command(int argc, char** argv) {
  MemoryOptions o;
  if (!parse(o, argc, argv)) return kOk;
  if (o.list) {
    for (const std::string& name : catalog_names()) fmt::print("{}\n", name);
    return kOk;
  }
  const FoundModel found = find_model(o.model);
  const WeightFormat format = o.weights.empty() ? found.shape.published : weight_format(o.weights);
  const CacheFormat cache = o.cache == "fp8" ? CacheFormat::k8Bit : CacheFormat::k16Bit;
  OrderedJson json = report(o, found, format, cache);
  if (!o.on.empty()) {
    json["on"] = report_devices(require_hardware(o.on, "--on"), json["total_bytes"].get<double>());
  }
  const std::map<std::string, Total> kinds = by_kind(found.shape, format, cache, o.context);
  if (!o.json) {
    print_table(json, kinds, o.by_layer);
    return kOk;
  }
  if (o.by_layer) {
    for (const auto& [kind, t] : kinds) {
      json["by_layer"].push_back({{"kind", kind},
                                  {"blocks", t.blocks},
                                  {"weights_bytes", count(std::ceil(t.weights))},
                                  {"cache_bytes_per_token", count(t.cache_per_token)},
                                  {"state_bytes_per_sequence", count(t.state)},
                                  {"cache_bytes", count(std::ceil(t.cache))}});
    }
  }
  print_json(json);
  return kOk;
}

}  // namespace sluice
