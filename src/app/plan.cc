// sluice plan: what could run a model, how fast, at what price, and on whose numbers that rests.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "app/cli.h"
#include "app/commands.h"
#include "app/plan_input.h"
#include "app/plan_page.h"
#include "app/report.h"
#include "base/error.h"
#include "plan/prefill.h"
#include "plan/sensitivity.h"
#include "plan/site.h"

namespace sluice {
namespace {

struct PlanOptions {
  std::string model, on, prefill_on, site, weights, out, html, cache = "bf16", draft = "none";
  int users = 0, context = 4096, output = 1024, max_devices = 0, most = 5;
  float min_speed = 0, max_first_ms = 0, max_kw = 0, max_usd = 0;
  bool fastest = false, json = false;
};

/// The page answers for every load; what only one plan can have is refused.
void check_page_flags(const PlanOptions& o) {
  const std::pair<bool, const char*> others[] = {{!o.prefill_on.empty(), "--prefill-on"},
                                                 {!o.out.empty(), "-o"},
                                                 {!o.site.empty(), "--site"},
                                                 {o.draft == "pipe", "--draft pipe"},
                                                 {o.json, "--json"},
                                                 {o.min_speed > 0, "--min-speed"},
                                                 {o.max_first_ms > 0, "--max-first"},
                                                 {o.max_kw > 0, "--max-kw"},
                                                 {o.max_usd > 0, "--max-usd"},
                                                 {o.max_devices > 0, "--max-devices"},
                                                 {o.most != PlanOptions().most, "--show"}};
  for (const auto& [is_given, flag] : others) {
    if (is_given) throw UsageError(fmt::format("{}: cannot be used with --html", flag));
  }
}

void add_limits(CLI::App& app, PlanOptions& o) {
  add_number(app, "--min-speed", o.min_speed, 0, 1e9F, "tokens/s that every user must get")
      ->group("Limits");
  add_number(app, "--max-first", o.max_first_ms, 0, 1e9F, "milliseconds to the first token")
      ->group("Limits");
  add_number(app, "--max-kw", o.max_kw, 0, 1e9F, "power")->group("Limits");
  add_number(app, "--max-usd", o.max_usd, 0, 1e9F, "USD per hour")->group("Limits");
  add_integer(app, "--max-devices", o.max_devices, 1, 1 << 20, "devices")->group("Limits");
}

void add_load(CLI::App& app, PlanOptions& o) {
  add_integer(app, "--users", o.users, 1, 1 << 24,
              "requests in flight (default 1; with --site what gives the most tokens per joule)")
      ->group("Load");
  add_integer(app, "--context", o.context, 1, 1 << 30, "tokens of a prompt (default 4096)")
      ->group("Load");
  add_integer(app, "--output", o.output, 1, 1 << 30, "tokens of an answer (default 1024)")
      ->group("Load");
  add_formats(app, o.weights, o.cache);
  add_choice(app, "--draft", o.draft, draft_names(),
             "speculation: method and guesses per verification, with published acceptance; pipe: "
             "guesses of one user fill the stages, with the loss that was measured")
      ->group("Formats");
}

bool parse(PlanOptions& o, int argc, char** argv) {
  CLI::App app;
  set_help(
      app, "plan", "MODEL --on HARDWARE[,HARDWARE] [flags]",
      "Searches placements of a model on hardware that you may not have: tensor, expert and "
      "pipeline groups on GPUs and TPUs, layers per device on wafers and SRAM machines. Prints "
      "the best plan with its memory, its time, its price and what the answer rests on, and why "
      "the others lost. Two kinds of hardware: attention and states live on the first, "
      "feed-forwards on the second.",
      {"sluice plan DeepSeek-V3 --on B200 --users 16 --weights 8bit",
       "sluice plan Kimi-K3 --on CS-3 --users 80 --context 96300 --weights 4bit --fastest",
       "sluice plan Kimi-K3 --on GB200,CS-3 --weights 4bit --prefill-on B200",
       "sluice plan Meta-Llama-3.1-70B --on H100 --min-speed 60 -o plan.json",
       "sluice plan 3T/150B/80/mla --on GB300 --weights 4bit --site 750MW --min-speed 50",
       "sluice plan Kimi-K3 --html plans.html"});
  add_text(
      app, "MODEL", "", o.model,
      "a name of the catalogue (sluice memory --list), a config.json, a model on disk, or e.g. "
      "3T/150B/80/mla: parameters, active ones, layers, attention (gqa, mla, hybrid, "
      "compressed)");
  add_name(app, "--on", "HW[,HW]", o.on,
           fmt::format("hardware by name: {}; or the path of a profile like those in hardware/",
                       fmt::join(hardware_names(), ", ")));
  add_name(app, "--prefill-on", "HW", o.prefill_on,
           "compute prompts there and send the cache over (-o: too); adds time, not price");
  add_load(app, o);
  add_limits(app, o);
  add_switch(app, "--fastest", o.fastest, "the fastest plan per user instead of the cheapest")
      ->group("Search");
  add_name(
      app, "--site", "POWER", o.site,
      "fill a site of so many kW, MW or GW, its cooling included, with copies of the plan that "
      "gives the most tokens per joule: 750MW")
      ->group("Search");
  add_integer(app, "--show", o.most, 1, 1000, "plans to show (default 5)")->group("Output");
  add_name(app, "-o", "FILE", o.out, "write the plan, for `sluice simulate --plan`")
      ->group("Output");
  add_name(app, "--html", "FILE", o.html,
           "write an interactive page instead: MODEL (or none) and the catalogue's main ones on "
           "all hardware (or that of --on), 1 to 256 users, 1 Ki to 1 Mi tokens")
      ->group("Output");
  add_switch(app, "--json", o.json, "print one object")->group("Output");
  if (!parse_flags(app, argc, argv)) return false;
  if (!o.html.empty()) {
    check_page_flags(o);
    return true;
  }
  if (o.model.empty())
    throw UsageError("MODEL: expected a model, got none; `sluice memory --list` shows names");
  if (o.on.empty()) throw UsageError("--on: expected hardware, e.g. B200 or CS-3, got none");
  return true;
}

std::vector<Hardware> hardware_list(const std::string& names) {
  std::vector<Hardware> list;
  for (size_t at = 0; at <= names.size();) {
    const size_t comma = std::min(names.find(',', at), names.size());
    const std::string name = names.substr(at, comma - at);
    if (name.empty()) {
      throw UsageError(fmt::format("--on: expected names with a comma between, got \"{}\"", names));
    }
    list.push_back(require_hardware(name, "--on"));
    at = comma + 1;
  }
  return list;
}

/// A limit that nothing is known about cannot be kept.
void check_limits(const PlanOptions& o, const std::vector<Hardware>& hardware) {
  for (const Hardware& one : hardware) {
    const auto require = [&](bool is_known, const char* flag, const char* what) {
      if (is_known) return;
      throw Error(ErrorCode::kUnsupported, "{}: the {} of {} is not known", flag, what, one.name);
    };
    require(o.max_usd == 0 || usd_per_hour(one), "--max-usd", "price");
    require(o.max_kw == 0 || one.find("power") != nullptr, "--max-kw", "power");
  }
}

int error_percent(const Candidate& c) {
  int percent = 0;
  for (const DeviceGroup& group : c.placement.groups) {
    percent = std::max(percent, error_percent(*group.hardware));
  }
  return percent;
}

OrderedJson or_null(const std::optional<double>& value) {
  return value ? OrderedJson(rounded(*value)) : OrderedJson(nullptr);
}

OrderedJson to_json(const Candidate& c, const ModelShape& model) {
  OrderedJson json = {{"plan", c.name},
                      {"devices", c.devices},
                      {"meets_demand", c.fault.empty()},
                      {"tokens_per_s_per_user", rounded(c.user_tokens_per_s())},
                      {"tokens_per_s", rounded(c.tokens_per_s)},
                      {"first_token_ms", rounded(c.first_ms)},
                      {"us_per_layer_and_token", rounded(c.token_us / model.n_layers)},
                      {"memory",
                       {{"weights_bytes", std::ceil(c.fullest.weights_bytes)},
                        {"cache_bytes", std::ceil(c.fullest.cache_bytes)},
                        {"usable_bytes", std::floor(c.fullest.usable_bytes)}}},
                      {"time_us",
                       {{"compute", rounded(c.time.compute_us)},
                        {"memory", rounded(c.time.memory_us)},
                        {"joins", rounded(c.time.collective_us)},
                        {"launch", rounded(c.time.launch_us)},
                        {"hops", rounded(c.hops_us)},
                        {"draft", rounded(c.draft_us)},
                        {"slowest_stage", rounded(c.slowest_stage_us)},
                        {"per_emitted_token", rounded(c.token_us)}}},
                      {"tokens_per_pass", rounded(c.accepted)},
                      {"batches_in_pipe", c.in_pipe},
                      {"usd_per_hour", or_null(c.usd_per_hour)},
                      {"usd_per_mtok", or_null(c.usd_per_mtok())},
                      {"joules_per_token", or_null(c.joules_per_token())},
                      {"kw", or_null(c.watts ? std::optional(*c.watts / 1e3) : std::nullopt)}};
  if (!c.fault.empty()) json["fault"] = c.fault;
  return json;
}

std::string why_lost(const Candidate& c, const Candidate& best, const Demand& demand) {
  if (!c.fault.empty()) return c.fault;
  const std::optional<double> mine = c.usd_per_mtok(), its = best.usd_per_mtok();
  if (demand.frugal && !demand.fastest && c.site_watts && best.site_watts) {
    const double joules = *c.site_watts / c.tokens_per_s;
    return fmt::format("{:.2f} times the energy", joules * best.tokens_per_s / *best.site_watts);
  }
  if (!demand.fastest && mine && its) return fmt::format("{:.2f} times the price", *mine / *its);
  if (!demand.fastest) return "more devices per token";
  return fmt::format("{:.0f} % slower per user", 100 * (1 - best.token_us / c.token_us));
}

void print_best(const OrderedJson& best, const OrderedJson& json) {
  const auto number = [&](const char* key) { return best[key].get<double>(); };
  fmt::print("{}\n{}\n\n", json["model"].get<std::string>(), best["plan"].get<std::string>());
  fmt::print("  {:<34}{:>12} tokens/s  (+-{} %)\n", "one user",
             short_number(number("tokens_per_s_per_user")), json["error_percent"].get<int>());
  fmt::print("  {:<34}{:>12} tokens/s\n", "all users", short_number(number("tokens_per_s")));
  fmt::print("  {:<34}{:>12} ms\n", "first token, alone", short_number(number("first_token_ms")));
  fmt::print("  {:<34}{:>12} us\n", "per layer and emitted token",
             short_number(number("us_per_layer_and_token")));
  const auto money = [&](const char* label, const char* key, const char* unit) {
    if (best[key].is_null())
      fmt::print("  {:<34}{:>12}\n", label, "not known");
    else
      fmt::print("  {:<34}{:>12} {}\n", label, short_number(number(key)), unit);
  };
  money("price", "usd_per_hour", "USD/h");
  money("price of output", "usd_per_mtok", "USD per million tokens");
  money("energy", "joules_per_token", "J per token");
  money("power", "kw", "kW");
  const OrderedJson& memory = best["memory"];
  fmt::print("\nMemory of the fullest device\n");
  for (const char* key : {"weights_bytes", "cache_bytes", "usable_bytes"}) {
    const std::string name(key, std::string_view(key).find('_'));
    fmt::print("  {:<34}{:>12}\n", name, bytes_text(memory[key].get<double>()));
  }
  fmt::print("\nTime of one pass through all stages, us\n");
  for (const auto& [key, us] : best["time_us"].items()) {
    const std::string name = key == "slowest_stage"       ? "of which the slowest stage"
                             : key == "per_emitted_token" ? "per emitted token"
                                                          : key;
    fmt::print("  {:<34}{:>12}\n", name, short_number(us.get<double>()));
  }
}

void print_rest(const OrderedJson& json) {
  if (!json["runners_up"].empty()) fmt::print("\nOthers\n");
  for (const OrderedJson& other : json["runners_up"]) {
    fmt::print("  {}: {}\n", other["plan"].get<std::string>(), other["why"].get<std::string>());
  }
  fmt::print("\nWhat the speed rests on: {:.0f} % estimates and assumptions\n",
             100 * json["estimated_share"].get<double>());
  for (const OrderedJson& i : json["sensitivity"]) {
    fmt::print("  {:<24}{:<10} weight {:.2f}, {} to {} tokens/s\n", i["number"].get<std::string>(),
               i["kind"].get<std::string>(), i["elasticity"].get<double>(),
               short_number(i["at_low"].get<double>()), short_number(i["at_high"].get<double>()));
  }
  for (const OrderedJson& note : json["notes"]) fmt::print("{}\n", note.get<std::string>());
}

void add_prefill(OrderedJson& json, const Prefill& prefill) {
  json["prefill"] = {{"plan", prefill.plan},
                     {"compute_ms", rounded(prefill.compute_ms)},
                     {"cache_bytes", std::ceil(prefill.cache_bytes)},
                     {"transfer_ms", rounded(prefill.transfer_ms)},
                     {"first_token_ms", rounded(prefill.first_ms())}};
  json["notes"].push_back(fmt::format("Prefill on {}: {:.1f} ms, then {} of cache in {:.1f} ms",
                                      prefill.plan, prefill.compute_ms,
                                      bytes_text(prefill.cache_bytes), prefill.transfer_ms));
}

Demand demand_of(const PlanOptions& o) {
  Demand demand{.users = double(std::max(o.users, 1)),
                .prompt = double(o.context),
                .output = double(o.output)};
  demand.min_speed = o.min_speed;
  demand.max_first_ms = o.max_first_ms;
  demand.max_power = o.max_kw * 1e3;
  demand.max_usd = o.max_usd;
  demand.max_devices = o.max_devices;
  demand.fastest = o.fastest;
  demand.frugal = !o.site.empty();
  demand.draft = draft_named(o.draft);
  demand.cache = o.cache == "fp8" ? CacheFormat::k8Bit : CacheFormat::k16Bit;
  return demand;
}

OrderedJson report(const PlanOptions& o, const ModelShape& model, const Demand& demand,
                   const std::vector<Candidate>& all) {
  const Candidate& best = all.front();
  const std::vector<Influence> rests_on = influences(model, best, demand);
  OrderedJson json = {{"model", o.model},
                      {"users", demand.users},
                      {"placements", all.size()},
                      {"best", to_json(best, model)}};
  json["runners_up"] = OrderedJson::array();
  for (size_t i = 1; i < all.size() && int(i) < o.most; ++i) {
    json["runners_up"].push_back(to_json(all[i], model));
    json["runners_up"].back()["why"] = why_lost(all[i], best, demand);
  }
  json["error_percent"] = error_percent(best);
  json["estimated_share"] = rounded(estimated_share(rests_on));
  json["sensitivity"] = OrderedJson::array();
  for (const Influence& i : rests_on) {
    json["sensitivity"].push_back({{"hardware", i.hardware},
                                   {"number", i.number},
                                   {"kind", i.kind},
                                   {"elasticity", rounded(i.elasticity)},
                                   {"at_low", rounded(i.at_low)},
                                   {"at_high", rounded(i.at_high)},
                                   {"source", i.source}});
  }
  json["notes"] = OrderedJson::array();
  if (demand.draft.fills_pipe) {
    json["notes"].push_back(
        fmt::format("Draft {}: {} batches of each user under way, {:.2f} tokens per pass by the "
                    "wall clock ({})",
                    demand.draft.method, best.in_pipe, best.accepted, demand.draft.source));
  } else if (!demand.draft.source.empty()) {
    json["notes"].push_back(fmt::format("Draft {}: {} tokens accepted per verification of {} ({})",
                                        demand.draft.method, demand.draft.accepted,
                                        demand.draft.length + 1, demand.draft.source));
  }
  for (const std::string& what : left_out(model, o.weights.empty())) {
    json["notes"].push_back("Not counted: " + what);
  }
  return json;
}

int write_page(const PlanOptions& o) {
  PageQuestion question{
      .model = o.model, .hardware = {}, .weights = o.weights, .demand = demand_of(o)};
  if (!o.on.empty()) question.hardware = hardware_list(o.on);
  require_writable(o.html);
  Progress progress("Pricing plans", false);
  write_file(o.html, plan_page(question, progress));
  return kOk;
}

void add_site(OrderedJson& json, const Candidate& best, const Demand& demand, double watts) {
  const SiteFill site = fill_site(best, demand.users, watts);
  json["site"] = {{"mw", rounded(watts / 1e6)},
                  {"mw_drawn", rounded(site.watts / 1e6)},
                  {"mw_of_devices", rounded(site.it_watts / 1e6)},
                  {"pue", rounded(site.watts / site.it_watts)},
                  {"plans", site.plans},
                  {"devices", site.devices},
                  {"racks", or_null(site.racks)},
                  {"users", site.users},
                  {"tokens_per_s_per_user", rounded(best.user_tokens_per_s())},
                  {"tokens_per_s", rounded(site.tokens_per_s)},
                  {"tokens_per_day", rounded(site.tokens_per_day())},
                  {"usd_per_hour", or_null(site.usd_per_hour)}};
  std::set<std::string> told;
  for (const DeviceGroup& group : best.placement.groups) {
    if (!told.insert(group.hardware->name).second) continue;
    const Quantity& pue = *group.hardware->find("pue");
    json["notes"].push_back(fmt::format("PUE of {}: {} ({} to {}), {}: {}", group.hardware->name,
                                        pue.value, pue.low, pue.high, pue.kind, pue.source));
  }
}

void print_site(const OrderedJson& site) {
  const auto line = [&](const char* label, const char* key, const char* unit = "") {
    const std::string text =
        site[key].is_null() ? "not known" : short_number(site[key].get<double>());
    fmt::print("  {:<34}{:>12} {}\n", label, text, unit);
  };
  fmt::print("\nA site of {} MW, filled with this plan\n", short_number(site["mw"].get<double>()));
  line("drawn by the devices", "mw_of_devices", "MW");
  line("times PUE", "pue");
  line("plans", "plans");
  line("devices", "devices");
  line("racks", "racks");
  line("users at a time", "users");
  line("each of them", "tokens_per_s_per_user", "tokens/s");
  line("in all", "tokens_per_s", "tokens/s");
  line("in a day", "tokens_per_day", "tokens");
  line("price", "usd_per_hour", "USD/h");
}

}  // namespace

int plan_command(int argc, char** argv) {
  PlanOptions o;
  if (!parse(o, argc, argv)) return kOk;
  if (!o.html.empty()) return write_page(o);
  if (!o.out.empty()) require_writable(o.out);
  const ModelShape model = find_model(o.model).shape;
  Demand demand = demand_of(o);
  demand.weights = o.weights.empty() ? model.published : weight_format(o.weights);
  demand.compute_bits = compute_bits_for(demand.weights);
  const std::vector<Hardware> hardware = hardware_list(o.on);
  if (hardware.size() > 2) throw UsageError("--on: expected one or two kinds of hardware");
  check_limits(o, hardware);
  const double site_watts = o.site.empty() ? 0 : watts_from_text(o.site, "--site");
  const bool any_users = site_watts > 0 && o.users == 0 && !o.fastest;
  const std::vector<Candidate> all =
      any_users ? search_site(model, hardware, demand) : search(model, hardware, demand);
  const Candidate& best = all.front();
  if (!best.fault.empty()) {
    throw Error(ErrorCode::kResource,
                "no plan of {} meets the demand; the nearest, {}, {}: {:.2f} times too {}",
                all.size(), best.name, best.fault, best.short_by,
                best.fault.starts_with("gives") ? "slow" : "much");
  }
  OrderedJson json = report(o, model, demand, all);
  std::optional<Prefill> prefill;
  if (!o.prefill_on.empty()) {
    prefill = prefill_elsewhere(model, require_hardware(o.prefill_on, "--prefill-on"),
                                *best.placement.groups.front().hardware, demand);
    add_prefill(json, *prefill);
  }
  if (site_watts > 0) add_site(json, best, demand, site_watts);
  if (!o.out.empty()) {
    OrderedJson plan = placement_to_json(best.placement, o.model);
    if (o.draft != "none") plan["draft"] = o.draft;
    if (prefill) plan["prefill"] = placement_to_json(prefill->placement, o.model);
    write_file(o.out, plan.dump(1) + '\n');
  }
  if (o.json) {
    print_json(json);
  } else {
    print_best(json["best"], json);
    if (json.contains("site")) print_site(json["site"]);
    print_rest(json);
  }
  return kOk;
}

}  // namespace sluice
