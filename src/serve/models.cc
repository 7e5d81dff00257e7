#include "serve/models.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <climits>
#include <utility>

#include "base/error.h"

namespace sluice {
namespace {

constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium",
                                                      "high", "xhigh",   "max"};
constexpr double kMaxPrice = 1e6;

double read_number(const Config& config, std::string_view key, double low, double high,
                   double fallback) {
  const double value = config.number(key, fallback);
  if (value >= low && value <= high) return value;
  throw Error(ErrorCode::kInvalidInput, "{}: {}: expected a number from {} to {}, got {}",
              config.what(), key, low, high, value);
}

double read_price(const Config& config, std::string_view key, double fallback) {
  return read_number(config, key, 0, kMaxPrice, fallback);
}

/// Typing errors in a price list are not for the customer to find.
void check_keys(const Config& config, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : config.json().items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected one of {}", config.what(), key,
                fmt::join(known, ", "));
  }
}

Price read_prices(const Config& config) {
  check_keys(config, {"input", "cached", "output", "priority", "flex"});
  Price price;
  price.input = read_price(config, "input", 0);
  price.cached = read_price(config, "cached", price.input);
  price.output = read_price(config, "output", 0);
  price.priority = read_price(config, "priority", 1);
  price.flex = read_price(config, "flex", 1);
  return price;
}

OrderedJson price_json(const Price& price) {
  return {{"input", price.input},
          {"cached", price.cached},
          {"output", price.output},
          {"priority", price.priority},
          {"flex", price.flex}};
}

OrderedJson model_json(const std::string& name, const ServedModel& model) {
  OrderedJson json = {{"id", name},
                      {"object", "model"},
                      {"created", model.created},
                      {"owned_by", "sluice"},
                      {"root", model.root},
                      {"type", "model"},  // from here what Anthropic's clients read
                      {"display_name", name},
                      {"created_at", fmt::format("{:%FT%TZ}", fmt::gmtime(time_t(model.created)))},
                      {"max_model_len", model.context},
                      {"context_length", model.context}};
  if (!model.effort.empty()) json["default_effort"] = model.effort;
  if (model.price) json["price"] = price_json(*model.price);
  return json;
}

void change_sampling(SamplingParams& s, const Config& config) {
  const auto change = [&](std::string_view key, double low, double high, float& value) {
    if (config.has(key)) value = float(read_number(config, key, low, high, 0));
  };
  change("temperature", 0, 2, s.temperature);
  change("top_p", 0, 1, s.top_p);
  if (config.has("top_k")) s.top_k = int(config.integer_in("top_k", 0, INT_MAX));
  change("presence_penalty", -2, 2, s.presence_penalty);
  change("frequency_penalty", -2, 2, s.frequency_penalty);
}

/// What a tier's entry says about `model`.
void change(ServedModel& model, const Config& config) {
  check_keys(config, {"model", "effort", "context", "max_tokens", "temperature", "top_p", "top_k",
                      "presence_penalty", "frequency_penalty", "price"});
  model.effort = config.text("effort", model.effort);
  if (!model.effort.empty() &&
      std::find(kEfforts.begin(), kEfforts.end(), model.effort) == kEfforts.end()) {
    throw Error(ErrorCode::kInvalidInput, "{}: effort: expected one of {}, got \"{}\"",
                config.what(), fmt::join(kEfforts, ", "), model.effort);
  }
  if (config.has("context")) model.context = config.integer_in("context", 1, model.context);
  if (config.has("max_tokens")) {
    model.max_tokens = config.integer_in("max_tokens", 1, model.context);
  }
  change_sampling(model.sampling, config);
  if (config.has("price")) model.price = read_prices(config.object("price"));
}

}  // namespace

void Models::add(ServedModel model) {
  if (names_.contains(model.name)) {
    throw Error(ErrorCode::kInvalidInput, "--model: {}: expected a name for each model",
                model.name);
  }
  model.root = model.name;
  entries_.push_back(std::move(model));
  names_[entries_.back().name] = &entries_.back();
}

void Models::add_tiers(const Json& tiers, const std::string& what) {
  const Config file(tiers, what);
  if (tiers.contains("")) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected a name for each tier, got \"\"", what);
  }
  const auto config_of = [&](const std::string& name, const Json& value) {
    return Config(value, fmt::format("{}: {}", what, name));
  };
  // A model before its tiers, which begin as copies of it, and these before other names of them.
  for (const auto& [name, value] : tiers.items()) {
    ServedModel* model = find_served(name);
    if (model != nullptr) change(*model, config_of(name, value));
  }
  for (const auto& [name, value] : tiers.items()) {
    if (find_served(name) == nullptr && !value.is_string()) add_tier(name, config_of(name, value));
  }
  for (const auto& [name, value] : tiers.items()) {
    if (value.is_string()) add_name(name, value.get<std::string>(), what);
  }
}

ServedModel* Models::find_served(const std::string& name) {
  const auto found = names_.find(name);
  const bool is_served = found != names_.end() && found->second->root == name;
  return is_served ? found->second : nullptr;
}

void Models::add_tier(const std::string& name, const Config& config) {
  const std::string root = config.text("model");
  const ServedModel* model = find_served(root);
  if (model == nullptr) {
    std::vector<std::string> served;
    for (const ServedModel* other : this->served()) served.push_back(other->name);
    throw Error(ErrorCode::kInvalidInput, "{}: model: expected a served model ({}), got \"{}\"",
                config.what(), fmt::join(served, ", "), root);
  }
  ServedModel tier = *model;
  tier.name = name;
  change(tier, config);
  entries_.push_back(std::move(tier));
  names_[name] = &entries_.back();
}

void Models::add_name(const std::string& name, const std::string& target, const std::string& what) {
  const auto found = names_.find(target);
  if (found == names_.end() || found->second->name != target) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected a model or tier, got \"{}\"", what,
                name, target);
  }
  names_[name] = found->second;
}

const ServedModel& Models::find(const std::string& name) const {
  if (name.empty()) return entries_.front();
  return named(name);
}

const ServedModel& Models::named(const std::string& name) const {
  if (const auto found = names_.find(name); found != names_.end()) return *found->second;
  std::vector<std::string> names;
  for (const ServedModel& model : entries_) names.push_back("`" + model.name + "`");
  throw ApiError(404,
                 fmt::format("The model `{}` does not exist; this server has {}.",
                             name.substr(0, 200), fmt::join(names, ", ")),
                 "model", "model_not_found");
}

std::vector<const ServedModel*> Models::entries() const {
  std::vector<const ServedModel*> result;
  for (const ServedModel& model : entries_) result.push_back(&model);
  return result;
}

std::vector<const ServedModel*> Models::served() const {
  std::vector<const ServedModel*> result = entries();
  std::erase_if(result, [](const ServedModel* model) { return model->name != model->root; });
  return result;
}

OrderedJson Models::list() const {
  OrderedJson data = OrderedJson::array();
  for (const ServedModel& model : entries_) data.push_back(model_json(model.name, model));
  for (const auto& [name, model] : names_) {
    if (name != model->name) data.push_back(model_json(name, *model));
  }
  const OrderedJson first = data.front()["id"], last = data.back()["id"];
  return {{"object", "list"},
          {"data", std::move(data)},
          {"first_id", first},
          {"last_id", last},
          {"has_more", false}};
}

OrderedJson Models::describe(const std::string& name) const {
  return model_json(name, named(name));
}

}  // namespace sluice
