#include "app/plan_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "plan/first_token.h"
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

/// What one way of placing the model gives at one load; by number of guesses what depends on it.
struct Entry {
  std::string form;          // the plan's name with # for its numbers of devices and stages
  std::vector<int> counts;   // these
  std::vector<int> devices;  // of each part of the hardware
  size_t fullest = 0;        // the part with the fullest device
  double fill = 0;           // of that device
  double usd_per_hour = 0;   // or devices, if that is not known
  double shared[std::size(kEntryColumns)] = {};
  std::vector<double> token_us;
  std::vector<std::array<double, std::size(kGridColumns)>> points;
};

struct Load {
  std::map<int, Entry> ways;
  std::vector<int> best;  // by number of guesses
  std::set<int> stored;
};

constexpr size_t kCorners = 4;  // of a cell of the grid

/// A way that leads to plans of one form at all corners of a cell, so that there are plans between.
struct CellWay {
  int way;
  std::array<const Entry*, kCorners> corners;
};

std::vector<CellWay> ways_between(const std::array<Load*, kCorners>& corners) {
  std::vector<CellWay> all;
  for (const auto& [way, first] : corners[0]->ways) {
    CellWay one{.way = way, .corners = {}};
    bool is_alike = true;
    for (size_t i = 0; i < kCorners; ++i) {
      one.corners[i] = &corners[i]->ways.at(way);
      is_alike = is_alike && one.corners[i]->form == first.form &&
                 one.corners[i]->fullest == first.fullest;
    }
    if (is_alike) all.push_back(one);
  }
  return all;
}

/// The best of them where the corners have these weights, were everything linear; -1 without any.
int best_between(const std::vector<CellWay>& ways, const std::array<double, kCorners>& weights,
                 size_t guess, bool fastest) {
  int best = -1;
  std::pair<double, double> least;
  for (const CellWay& one : ways) {
    double fill = 0, usd = 0, us = 0;
    for (size_t i = 0; i < kCorners; ++i) {
      fill += weights[i] * one.corners[i]->fill;
      usd += weights[i] * one.corners[i]->usd_per_hour;
      us += weights[i] * one.corners[i]->token_us[guess];
    }
    const std::pair rank(std::max(1.0, fill), fastest ? us : us * usd);
    if (best >= 0 && rank >= least) continue;
    best = one.way;
    least = rank;
  }
  return best;
}

/// All ways at all loads, for one format, and the best at each load.
class WayTable {
 public:
  explicit WayTable(const PageAxes& axes)
      : n_users_(axes.users.size()),
        n_contexts_(axes.contexts.size()),
        n_guesses_(axes.guesses.size()),
        loads_(n_users_ * n_contexts_) {}

  Load& at(size_t user, size_t context) { return loads_[user * n_contexts_ + context]; }
  const std::vector<Load>& loads() const { return loads_; }

  /// Between four loads the page compares ways that it knows at all four: those that are best at
  /// one of them or somewhere between.
  void choose_stored(bool fastest) {
    for (size_t u = 0; u + 1 < n_users_; ++u) {
      for (size_t c = 0; c + 1 < n_contexts_; ++c) {
        const std::array<Load*, kCorners> corners = {&at(u, c), &at(u, c + 1), &at(u + 1, c),
                                                     &at(u + 1, c + 1)};
        std::set<int> ways;
        for (const Load* corner : corners) ways.insert(corner->best.begin(), corner->best.end());
        const std::vector<CellWay> between = ways_between(corners);
        for (double du : kShares) {
          for (double dc : kShares) {
            const std::array<double, kCorners> weights = {(1 - du) * (1 - dc), (1 - du) * dc,
                                                          du * (1 - dc), du * dc};
            for (size_t guess = 0; guess < n_guesses_; ++guess) {
              ways.insert(best_between(between, weights, guess, fastest));
            }
          }
        }
        ways.erase(-1);
        for (Load* corner : corners) corner->stored.insert(ways.begin(), ways.end());
      }
    }
  }

 private:
  static constexpr double kShares[] = {0.2, 0.5, 0.8};

  size_t n_users_, n_contexts_, n_guesses_;
  std::vector<Load> loads_;
};

/// Takes the numbers of devices and stages out of a plan's name, leaving # for each.
std::vector<int> take_counts(std::string& name) {
  std::vector<int> counts;
  std::string form;
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find_first_not_of("0123456789", at), name.size());
    const std::string_view after = std::string_view(name).substr(end);
    if (end > at && (after.starts_with(" x ") || after.starts_with(" stages"))) {
      counts.push_back(std::stoi(name.substr(at, end - at)));
      form += '#';
      at = end;
    } else {
      form.append(name, at, std::max<size_t>(end - at, 1));
      at += std::max<size_t>(end - at, 1);
    }
  }
  name = std::move(form);
  return counts;
}

class GridWriter {
 public:
  GridWriter(const PageHardware& hardware, const PageAxes& axes)
      : hardware_(hardware),
        points_(axes.guesses.size(), std::vector<Column>(std::size(kGridColumns))) {}

  /// What `c` gives with the next number of guesses, by every way that leads to it. `between`: a
  /// prompt of so many tokens is computed, too.
  void note(Load& load, const Candidate& c, const CostModel& cost, double between) {
    Entry& entry = load.ways[c.ways.front()];
    if (entry.points.empty()) {
      entry.form = c.name;
      entry.counts = take_counts(entry.form);
      entry.devices.resize(hardware_.parts.size());
      for (const DeviceGroup& group : cost.placement().groups) {
        entry.devices[part_of(hardware_, group.hardware->name)] += group.devices();
      }
      entry.fullest = part_of(hardware_, c.fullest_on);
      entry.fill = (c.fullest.weights_bytes + c.fullest.cache_bytes) / c.fullest.usable_bytes;
      entry.usd_per_hour = c.usd_per_hour.value_or(c.devices);
      const double shared[] = {c.first_ms, first_token_us(cost, between) / 1e3,
                               c.fullest.weights_bytes / kGiga, c.fullest.cache_bytes / kGiga};
      std::copy(std::begin(shared), std::end(shared), entry.shared);
    }
    const double round_us = c.token_us * c.accepted;
    const double waiting_us = round_us - c.time.total_us() - c.hops_us - c.draft_us;
    entry.token_us.push_back(c.token_us);
    entry.points.push_back({waiting_us > kNoWait * round_us ? waiting_us : 0, c.time.compute_us,
                            c.time.memory_us, c.time.collective_us, c.time.launch_us, c.hops_us});
    for (size_t i = 1; i < c.ways.size(); ++i) load.ways[c.ways[i]] = entry;
  }

  void add(WayTable& table, size_t format, bool fastest) {
    table.choose_stored(fastest);
    std::set<int> ways;
    for (const Load& load : table.loads()) {
      for (int best : load.best) best_.add(best);
      ways.insert(load.stored.begin(), load.stored.end());
    }
    // Way by way, since most of what a way gives changes little from load to load.
    for (int way : ways) {
      CHECK(size_t(way) < kMostWays);
      for (size_t at = 0; at < table.loads().size(); ++at) {
        const Load& load = table.loads()[at];
        const size_t key = (format * kMostWays + size_t(way)) * table.loads().size() + at;
        if (load.stored.contains(way)) add(load.ways.at(way), key);
      }
    }
  }

  void add_rest(std::vector<Influence> all, double speed) {
    for (Influence& i : all) {
      i.at_low /= speed;
      i.at_high /= speed;
    }
    rests_.push_back(std::move(all));
  }

  std::string text() const {
    std::vector<std::string> points;
    for (const std::vector<Column>& columns : points_) points.push_back(list_of(columns));
    return fmt::format(R"({{"forms":{},"plans":{},"parts":{},"best":{},"step":{},"plan":{},)"
                       R"("shared":{},"points":[{}],"rests":{}}})",
                       forms_.text(), plans_.text(), parts_text(), in_quotes(best_),
                       in_quotes(step_), in_quotes(plan_), list_of(shared_), fmt::join(points, ","),
                       rests_text());
  }

 private:
  void add(const Entry& entry, size_t key) {
    step_.add(double(key - last_key_));
    last_key_ = key;
    const size_t form =
        forms_.index(fmt::format("[{},{}]", OrderedJson(entry.form).dump(), entry.fullest));
    plan_.add(double(plans_.index(fmt::format("[{},[{}],[{}]]", form, fmt::join(entry.counts, ","),
                                              fmt::join(entry.devices, ",")))));
    for (size_t i = 0; i < shared_.size(); ++i) shared_[i].add(entry.shared[i]);
    for (size_t guess = 0; guess < points_.size(); ++guess) {
      for (size_t i = 0; i < points_[guess].size(); ++i) {
        points_[guess][i].add(entry.points[guess][i]);
      }
    }
  }

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
  Names forms_, plans_;
  Column best_, step_, plan_;
  size_t last_key_ = 0;
  std::vector<Column> shared_{std::size(kEntryColumns)};
  std::vector<std::vector<Column>> points_;  // by number of guesses
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
  GridWriter out(hardware, axes);
  for (size_t format = 0; format < model.weights.size(); ++format) {
    demand.weights = model.weights[format];
    demand.compute_bits = compute_bits_for(demand.weights);
    WayTable table(axes);
    for (size_t u = 0; u < axes.users.size(); ++u) {
      for (size_t c = 0; c < axes.contexts.size(); ++c) {
        demand.users = axes.users[u];
        demand.prompt = axes.contexts[c];
        Load& load = table.at(u, c);
        const double next = axes.contexts[std::min(c + 1, axes.contexts.size() - 1)];
        const double between = std::round(std::sqrt(axes.contexts[c] * next));
        const std::vector<Candidate> best =
            best_by_draft(model.shape, hardware.parts, demand, drafts,
                          [&](const Candidate& one, const CostModel& cost) {
                            out.note(load, one, cost, between);
                          });
        const bool has_rest =
            is_on(axes.rest_users, demand.users) && is_on(axes.rest_contexts, demand.prompt);
        for (size_t i = 0; i < best.size(); ++i) {
          load.best.push_back(best[i].ways.front());
          if (!has_rest) continue;
          demand.draft = drafts[i];
          out.add_rest(influences(model.shape, best[i], demand), best[i].user_tokens_per_s());
        }
      }
    }
    out.add(table, format, demand.fastest);
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
