#include "app/plan_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "app/plan_grid.h"
#include "app/plan_input.h"
#include "base/embedded.h"
#include "base/error.h"
#include "plan/catalog.h"
#include "plan/claims.h"
#include "plan/hypothetical.h"
#include "plan/phase.h"
#include "serve/page.h"

namespace sluice {

std::span<const EmbeddedFile> plan_page_files();

namespace {

constexpr const char* kMainModels[] = {
    "Kimi-K3",           "DeepSeek-V4-Pro",    "DeepSeek-V3.2",
    "GLM-5.2",           "gpt-oss-120b",       "NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16",
    "Qwen3.5-397B-A17B", "Meta-Llama-3.1-70B", "3T/150B/80/mla"};
// Mixers on the first, feed-forwards on the second.
constexpr std::pair<const char*, const char*> kPairs[] = {
    {"B200", "CS-3"}, {"GB300-NVL72", "CS-3"}, {"B200", "SN40L"}, {"Rubin-NVL72", "Groq-LPX"}};
constexpr double kUsers[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};
constexpr double kContexts[] = {1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20};
constexpr double kRestUsers[] = {1, 16, 256};
constexpr double kRestContexts[] = {1 << 12, 1 << 18};
constexpr int kGuesses[] = {0, 1, 4, 7};
constexpr int kPhaseContexts = 17, kPhaseSizes = 13;  // every second point of `sluice phase`
constexpr unsigned kMaxThreads = 8;
constexpr auto kProgressInterval = std::chrono::milliseconds(100);
constexpr double kWorthOffering = 0.97;  // of the published bytes: a narrower format

PageModel page_model(const std::string& name, const std::string& wanted_weights) {
  PageModel model{.shape = find_model(name).shape, .weights = {}};
  model.weights = {model.shape.published};
  const double published = weights_bytes(model.shape, model.shape.published);
  for (const char* format : {"bf16", "8bit", "4bit"}) {
    const WeightFormat other = weight_format(format);
    if (format == wanted_weights ||
        weights_bytes(model.shape, other) < kWorthOffering * published) {
      model.weights.push_back(other);
    }
  }
  return model;
}

OrderedJson model_to_json(const PageModel& model, CacheFormat cache, const PageAxes& axes) {
  const ModelShape& shape = model.shape;
  OrderedJson json = {{"name", shape.name},
                      {"source", shape.source},
                      {"parameters", shape.parameters()},
                      {"active", shape.active_parameters()},
                      {"layers", shape.n_layers},
                      {"blocks", shape.blocks.size()}};
  double per_token = 0, state = 0;
  for (const PartShape& part : shape.blocks) {
    per_token += cache_bytes_per_token(part, cache);
    state += state_bytes(part, cache);
  }
  json["cache_bytes_per_token"] = per_token;
  json["state_bytes"] = state;
  for (double context : axes.contexts) {
    json["prompt_bytes"].push_back(cache_bytes(shape, context, cache));
  }
  for (const WeightFormat& format : model.weights) {
    const bool is_published = &format == &model.weights.front();
    json["weights"].push_back({{"format", is_published ? "published" : format.name},
                               {"name", format.name},
                               {"bytes", std::ceil(weights_bytes(shape, format))}});
  }
  json["not_counted"] = left_out(shape, true);
  return json;
}

/// `singles`: the places of its parts are theirs.
OrderedJson hardware_to_json(const PageHardware& hardware, const std::vector<Hardware>& singles) {
  OrderedJson json = {{"name", hardware.name()}};
  int error = 0;
  for (const Hardware& part : hardware.parts) {
    error = std::max(error, error_percent(part));
    const auto at = std::find_if(singles.begin(), singles.end(),
                                 [&](const Hardware& one) { return one.name == part.name; });
    json["parts"].push_back(at - singles.begin());
  }
  json["error_percent"] = error;
  if (hardware.parts.size() > 1) return json;
  json["family"] = hardware.parts[0].family;
  for (const auto& [name, q] : hardware.parts[0].numbers) {
    json["numbers"][name] = {{"value", q.value}, {"low", q.low},   {"high", q.high},
                             {"unit", q.unit},   {"kind", q.kind}, {"source", q.source}};
  }
  return json;
}

PageAxes axes_for(const PageQuestion& question) {
  PageAxes axes{.users{std::begin(kUsers), std::end(kUsers)},
                .contexts{std::begin(kContexts), std::end(kContexts)},
                .guesses{std::begin(kGuesses), std::end(kGuesses)},
                .rest_users{std::begin(kRestUsers), std::end(kRestUsers)},
                .rest_contexts{std::begin(kRestContexts), std::end(kRestContexts)}};
  const auto require_within = [](const std::vector<double>& axis, double value, const char* flag) {
    if (value >= axis.front() && value <= axis.back()) return;
    throw Error(ErrorCode::kInvalidInput, "{}: expected {} to {} with --html, got {}", flag,
                axis.front(), axis.back(), value);
  };
  require_within(axes.users, question.demand.users, "--users");
  require_within(axes.contexts, question.demand.prompt, "--context");
  const int length = question.demand.draft.length;
  if (std::find(axes.guesses.begin(), axes.guesses.end(), length) == axes.guesses.end()) {
    axes.guesses.push_back(length);
  }
  return axes;
}

/// Each kind alone, then pairs: the one that was asked for, or those of kPairs that are there.
std::vector<PageHardware> page_hardware(const std::vector<Hardware>& singles, bool is_one_pair) {
  std::vector<PageHardware> all;
  for (const Hardware& one : singles) all.push_back({{one}});
  for (size_t a = 0; a < singles.size(); ++a) {
    for (size_t b = 0; b < singles.size(); ++b) {
      const bool is_pair =
          is_one_pair ? a < b
                      : std::any_of(std::begin(kPairs), std::end(kPairs), [&](const auto& pair) {
                          return singles[a].name == pair.first && singles[b].name == pair.second;
                        });
      if (is_pair) all.push_back({{singles[a], singles[b]}});
    }
  }
  return all;
}

/// What `sluice phase` answers by default.
PhaseQuestion phase_question(const std::string& attention) {
  return {.attention = attention, .weights = weight_format("4bit")};
}

/// For each kind of attention {"devices", "speed", "usd"}: values by context, then size.
std::string phases_of(const Hardware& hardware) {
  std::vector<std::string> kinds;
  for (const std::string& attention : attention_names()) {
    const PhaseQuestion question = phase_question(attention);
    std::vector<std::string> devices, speed, usd;
    for (double context : phase_contexts(kPhaseContexts)) {
      for (double size : phase_sizes(kPhaseSizes)) {
        const PhasePoint point = phase_point(question, hardware, context, size);
        devices.push_back(fmt::format("{:.0f}", point.devices));
        speed.push_back(fmt::format("{:.6g}", point.user_tokens_per_s));
        usd.push_back(point.usd_per_mtok > 0 ? fmt::format("{:.6g}", point.usd_per_mtok) : "null");
      }
    }
    kinds.push_back(fmt::format("{{\"devices\":[{}],\"speed\":[{}],\"usd\":[{}]}}",
                                fmt::join(devices, ","), fmt::join(speed, ","),
                                fmt::join(usd, ",")));
  }
  return fmt::format("[{}]", fmt::join(kinds, ","));
}

/// The text of `json` with further members: lists of values that are texts already.
std::string with_members(
    const OrderedJson& json,
    std::initializer_list<std::pair<const char*, std::vector<std::string>>> lists) {
  std::string text = json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  text.pop_back();
  for (const auto& [name, values] : lists) {
    text += fmt::format(",\"{}\":[{}]", name, fmt::join(values, ","));
  }
  return text + "}";
}

/// Runs job(0) .. job(n - 1) on several threads; rethrows the first exception.
void run_jobs(size_t n, Progress& progress, const std::function<void(size_t)>& job) {
  std::atomic<size_t> next = 0, done = 0;
  std::exception_ptr fault;
  std::mutex mutex;
  const auto work = [&] {
    for (size_t i; (i = next++) < n; ++done) {
      try {
        job(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (fault == nullptr) fault = std::current_exception();
        next = n;
      }
    }
  };
  std::vector<std::thread> threads;
  const unsigned n_threads = std::clamp(std::thread::hardware_concurrency(), 1U, kMaxThreads);
  for (unsigned t = 0; t < n_threads; ++t) threads.emplace_back(work);
  while (done < n && next < n) {
    progress.update(double(done) / double(n));
    std::this_thread::sleep_for(kProgressInterval);
  }
  for (std::thread& thread : threads) thread.join();
  progress.clear();
  if (fault != nullptr) std::rethrow_exception(fault);
}

/// Those that can be priced with any number of devices; why not goes to `refused`.
std::vector<Hardware> priceable(const std::vector<Hardware>& all, const ModelShape& model,
                                const Demand& demand, OrderedJson& refused) {
  std::vector<Hardware> hardware;
  for (const Hardware& one : all) {
    try {
      best_by_draft(model, {one}, demand, {demand.draft});
      hardware.push_back(one);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnsupported) throw;
      refused.push_back({{"name", one.name}, {"why", error.what()}});
    }
  }
  if (hardware.empty()) {
    throw Error(ErrorCode::kUnsupported, "--on: expected hardware that can be priced: {}",
                refused.front()["why"].get<std::string>());
  }
  return hardware;
}

std::vector<PageModel> page_models(const PageQuestion& question) {
  const std::string wanted = catalog_name(question.model).value_or(question.model);
  std::vector<std::string> names;
  if (!wanted.empty()) names.push_back(wanted);
  for (const char* name : kMainModels) {
    if (name != wanted) names.emplace_back(name);
  }
  std::vector<PageModel> models;
  for (const std::string& name : names) models.push_back(page_model(name, question.weights));
  return models;
}

OrderedJson drafts_of(const PageAxes& axes) {
  OrderedJson json = OrderedJson::array();
  for (const std::string& name : draft_names()) {
    const Draft draft = draft_named(name);
    if (draft.fills_pipe) continue;  // its gain depends on the placement
    const auto found = std::find(axes.guesses.begin(), axes.guesses.end(), draft.length);
    if (found == axes.guesses.end()) continue;
    json.push_back({{"name", name},
                    {"length", draft.length},
                    {"accepted", draft.accepted},
                    {"source", draft.source}});
  }
  return json;
}

struct PageGrids {
  std::vector<std::string> grids, prefills, phases;
};

PageGrids compute_grids(const std::vector<PageModel>& models,
                        const std::vector<PageHardware>& hardware,
                        const std::vector<Hardware>& singles, const Demand& demand,
                        const PageAxes& axes, Progress& progress) {
  PageGrids out;
  out.grids.resize(models.size() * hardware.size());
  out.prefills.resize(models.size() * singles.size());
  out.phases.resize(singles.size());
  std::vector<std::function<void()>> jobs;
  for (size_t m = 0; m < models.size(); ++m) {
    for (size_t h = 0; h < hardware.size(); ++h) {
      jobs.emplace_back([&, m, h] {
        out.grids[m * hardware.size() + h] = grid_of(models[m], hardware[h], demand, axes);
      });
    }
    for (size_t h = 0; h < singles.size(); ++h) {
      jobs.emplace_back([&, m, h] {
        out.prefills[m * singles.size() + h] = prefills_of(models[m], singles[h], demand, axes);
      });
    }
  }
  for (size_t h = 0; h < singles.size(); ++h) {
    jobs.emplace_back([&, h] { out.phases[h] = phases_of(singles[h]); });
  }
  run_jobs(jobs.size(), progress, [&](size_t i) { jobs[i](); });
  return out;
}

std::string page_data(const PageQuestion& question, Progress& progress) {
  const PageAxes axes = axes_for(question);
  const std::vector<PageModel> models = page_models(question);
  OrderedJson refused = OrderedJson::array();
  std::vector<Hardware> offered = question.hardware;
  if (offered.empty()) {
    for (const std::string& name : hardware_names()) offered.push_back(*find_hardware(name));
  }
  const std::vector<Hardware> singles =
      priceable(offered, models.front().shape, question.demand, refused);
  const std::vector<PageHardware> hardware =
      page_hardware(singles, question.hardware.size() == 2 && singles.size() == 2);
  const PageGrids computed =
      compute_grids(models, hardware, singles, question.demand, axes, progress);
  OrderedJson json = {
      {"first",
       {{"model", models.front().shape.name},
        {"weights", question.weights.empty() ? "published" : question.weights},
        {"draft", question.demand.draft.method},
        {"users", question.demand.users},
        {"context", question.demand.prompt}}},
      {"output", question.demand.output},
      {"cache", question.demand.cache == CacheFormat::k8Bit ? "fp8" : "bf16"},
      {"ranked", question.demand.fastest ? "fastest" : "cheapest"},
      {"axes",
       {{"guesses", axes.guesses},
        {"users", axes.users},
        {"context", axes.contexts},
        {"rest_users", axes.rest_users},
        {"rest_context", axes.rest_contexts}}},
      {"most_ways", kMostWays},
      {"shared", std::vector<std::string>(std::begin(kEntryColumns), std::end(kEntryColumns))},
      {"columns", std::vector<std::string>(std::begin(kGridColumns), std::end(kGridColumns))},
      {"drafts", drafts_of(axes)},
      {"refused", refused},
      {"claims", to_json(check_claims(shipped_claims(), "claims"))}};
  for (const PageModel& model : models) {
    json["models"].push_back(model_to_json(model, question.demand.cache, axes));
  }
  for (const PageHardware& one : hardware) {
    json["hardware"].push_back(hardware_to_json(one, singles));
  }
  const PhaseQuestion phase = phase_question("");
  json["phase"] = {{"contexts", phase_contexts(kPhaseContexts)},
                   {"sizes", phase_sizes(kPhaseSizes)},
                   {"attention", attention_names()},
                   {"layers", phase.layers},
                   {"active", phase.active},
                   {"users", phase.users},
                   {"weights", phase.weights.name}};
  return with_members(
      json,
      {{"grids", computed.grids}, {"prefills", computed.prefills}, {"phases", computed.phases}});
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

/// Modules become one script: imports go, exports are plain declarations.
std::string join_modules(std::initializer_list<std::string_view> modules) {
  std::string script;
  for (std::string_view module : modules) {
    for (size_t at = 0; at < module.size();) {
      const size_t end = std::min(module.find('\n', at), module.size() - 1) + 1;
      std::string_view line = module.substr(at, end - at);
      at = end;
      if (line.starts_with("import ")) continue;
      if (line.starts_with("export ")) line.remove_prefix(std::string_view("export ").size());
      script += line;
    }
  }
  return script;
}

std::string_view plan_page_file(std::string_view name) {
  for (const EmbeddedFile& file : plan_page_files()) {
    if (std::string_view(file.file).ends_with(name)) return file.text;
  }
  throw Error(ErrorCode::kNotFound, "{}: not compiled in", name);
}

}  // namespace

std::string plan_page(const PageQuestion& question, Progress& progress) {
  std::string data = page_data(question, progress);
  replace_all(data, "<", "\\u003c");  // nothing in it can end the element that holds it
  std::string page(plan_page_file("/index.html"));
  replace_all(page, "{{style}}",
              std::string(page_file("theme.css")) + std::string(plan_page_file("/plan.css")));
  replace_all(page, "{{script}}",
              join_modules({page_file("dom.js"), page_file("theme.js"), plan_page_file("/grid.js"),
                            plan_page_file("/numbers.js"), plan_page_file("/charts.js"),
                            plan_page_file("/main.js")}));
  replace_all(page, "{{data}}", data);
  return page;
}

}  // namespace sluice
