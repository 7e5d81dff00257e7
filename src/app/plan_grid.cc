#include "app/plan_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "plan/prefill.h"
#include "plan/sensitivity.h"

namespace sluice {
namespace {

constexpr double kGiga = 1e9;
constexpr char kDigits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
constexpr int kMostRepeats = 26;
constexpr double kNoWait = 1e-9;  // of a round: rounding

std::string in_quotes(const Column& column) { return '"' + column.text() + '"'; }

std::string list_of(const std::vector<Column>& columns) {
  std::vector<std::string> texts;
  for (const Column& column : columns) texts.push_back(in_quotes(column));
  return fmt::format("[{}]", fmt::join(texts, ","));
}

/// Distinct texts, numbered as they come.
class Names {
 public:
  size_t index(const std::string& text) {
    const auto [found, is_new] = indices_.try_emplace(text, indices_.size());
    if (is_new) list_ += (list_.empty() ? "" : ",") + text;
    return found->second;
  }
  std::string text() const { return '[' + list_ + ']'; }

 private:
  std::map<std::string, size_t> indices_;
  std::string list_;
};

// So that they repeat more often; people see less of them.
double to_thousandths(double value) { return std::round(value * 1e3) / 1e3; }
double to_ten_thousandths(double value) { return std::round(value * 1e4) / 1e4; }

size_t part_of(const PageHardware& hardware, const std::string& name) {
  return hardware.parts.front().name == name ? 0 : 1;
}

class GridWriter {
 public:
  explicit GridWriter(const PageHardware& hardware) : hardware_(hardware) {}

  void add(const Candidate& c) {
    std::vector<int> devices(hardware_.parts.size(), 0);
    for (const DeviceGroup& group : c.placement.groups) {
      devices[part_of(hardware_, group.hardware->name)] += group.devices();
    }
    plan_.add(double(plans_.index(
        fmt::format("[{},[{}],{:.0f},{}]", OrderedJson(c.name).dump(), fmt::join(devices, ","),
                    std::ceil(c.fullest.weights_bytes), part_of(hardware_, c.fullest_on)))));
    const double round_us = c.token_us * c.accepted;
    const double waiting_us = round_us - c.time.total_us() - c.hops_us - c.draft_us;
    const double values[] = {waiting_us > kNoWait * round_us ? waiting_us : 0,
                             c.time.compute_us,
                             c.time.memory_us,
                             c.time.collective_us,
                             c.time.launch_us,
                             c.hops_us,
                             c.first_ms,
                             c.fullest.cache_bytes / kGiga};
    for (size_t i = 0; i < std::size(values); ++i) points_[i].add(values[i]);
  }
  void add_rest(std::vector<Influence> all, double speed) {
    for (Influence& i : all) {
      i.at_low /= speed;
      i.at_high /= speed;
    }
    rests_.push_back(std::move(all));
  }
  std::string text() const {
    return fmt::format(R"({{"plans":{},"parts":{},"plan":{},"points":{},"rests":{}}})",
                       plans_.text(), parts_text(), in_quotes(plan_), list_of(points_),
                       rests_text());
  }

 private:
  std::string parts_text() const {
    const auto or_null = [](const std::optional<double>& value) {
      return value ? fmt::format("{}", *value) : std::string("null");
    };
    std::vector<std::string> parts;
    for (const Hardware& part : hardware_.parts) {
      const Quantity* const power = part.find("power");
      parts.push_back(fmt::format(
          "[{:.0f},{},{}]",
          std::floor(part.find("memory_bytes")->value * part.find("usable_memory")->value),
          or_null(usd_per_hour(part)),
          or_null(power == nullptr ? std::nullopt : std::optional(power->value))));
    }
    return fmt::format("[{}]", fmt::join(parts, ","));
  }

  std::string rests_text() const {
    Names numbers;
    const auto index = [&](const Influence& i) {
      return numbers.index(fmt::format("[{},\"{}\"]", part_of(hardware_, i.hardware), i.number));
    };
    size_t n = 0;
    for (const auto& all : rests_) {
      for (const Influence& i : all) n = std::max(n, index(i) + 1);
    }
    std::vector<Column> weight(n), low(n), high(n);
    for (const auto& all : rests_) {
      std::vector<const Influence*> by_number(n, nullptr);
      for (const Influence& i : all) by_number[index(i)] = &i;
      for (size_t k = 0; k < n; ++k) {
        const Influence* const i = by_number[k];
        weight[k].add(i == nullptr ? 0 : to_thousandths(i->elasticity));
        low[k].add(i == nullptr ? 1 : to_ten_thousandths(i->at_low));
        high[k].add(i == nullptr ? 1 : to_ten_thousandths(i->at_high));
      }
    }
    return fmt::format(R"({{"numbers":{},"weight":{},"low":{},"high":{}}})", numbers.text(),
                       list_of(weight), list_of(low), list_of(high));
  }

  const PageHardware& hardware_;
  Names plans_;
  Column plan_;
  std::vector<Column> points_{std::size(kGridColumns)};
  std::vector<std::vector<Influence>> rests_;
};

bool is_on(const std::vector<double>& axis, double value) {
  return std::find(axis.begin(), axis.end(), value) != axis.end();
}

}  // namespace

void Column::add(double value) {
  int exponent = 0;
  int64_t digits = 0;
  if (value > 0) {
    exponent = int(std::floor(std::log10(value))) - 5;
    digits = std::llround(value / std::pow(10, exponent));
    if (digits == 1'000'000) {
      digits = 100'000;
      ++exponent;
    }
  }
  const int shown = exponent + kExponentBias;
  CHECK(value >= 0 && shown >= 0 && shown < 36);
  std::string text(5, kDigits[shown]);
  for (size_t i = 4; i-- > 0; digits /= 36) text[i] = kDigits[digits % 36];
  if (text == last_) {
    ++repeats_;
    return;
  }
  text_ += repeats_text() + text;
  last_ = std::move(text);
  repeats_ = 0;
}

std::string Column::repeats_text() const {
  std::string text;
  for (int n = repeats_; n > 0; n -= kMostRepeats) text += char('@' + std::min(n, kMostRepeats));
  return text;
}

std::string PageHardware::name() const {
  return parts.size() == 1 ? parts[0].name : parts[0].name + " + " + parts[1].name;
}

std::string grid_of(const PageModel& model, const PageHardware& hardware, Demand demand,
                    const PageAxes& axes) {
  std::vector<Draft> drafts;
  for (int n : axes.guesses) drafts.push_back({.method = "", .length = n, .accepted = 1});
  GridWriter out(hardware);
  for (const WeightFormat& format : model.weights) {
    demand.weights = format;
    demand.compute_bits = compute_bits_for(format);
    for (double users : axes.users) {
      for (double context : axes.contexts) {
        demand.users = users;
        demand.prompt = context;
        const bool has_rest = is_on(axes.rest_users, users) && is_on(axes.rest_contexts, context);
        const std::vector<Candidate> best =
            best_by_draft(model.shape, hardware.parts, demand, drafts);
        for (size_t i = 0; i < best.size(); ++i) {
          out.add(best[i]);
          if (!has_rest) continue;
          demand.draft = drafts[i];
          out.add_rest(influences(model.shape, best[i], demand), best[i].user_tokens_per_s());
        }
      }
    }
  }
  return out.text();
}

std::string prefills_of(const PageModel& model, const Hardware& hardware, Demand demand,
                        const PageAxes& axes) {
  Names plans;
  Column plan, ms;
  for (const WeightFormat& format : model.weights) {
    demand.weights = format;
    demand.compute_bits = compute_bits_for(format);
    for (double context : axes.contexts) {
      demand.prompt = context;
      const Prefill prefill = fastest_prefill(model.shape, hardware, demand);
      plan.add(double(plans.index(OrderedJson(prefill.plan).dump())));
      ms.add(prefill.compute_ms);
    }
  }
  return fmt::format(R"({{"plans":{},"plan":{},"ms":{}}})", plans.text(), in_quotes(plan),
                     in_quotes(ms));
}

}  // namespace sluice
