#include "plan/site.h"

#include <charconv>
#include <cmath>
#include <map>
#include <tuple>

#include "base/error.h"

namespace sluice {
namespace {

constexpr double kMostWatts = 1e12;
constexpr double kMostUsers = 8192;

/// Racks of all kinds of devices of so many copies.
std::optional<double> racks_of(const Placement& placement, double plans) {
  std::map<std::string, double> devices;
  std::map<std::string, double> per_rack;
  for (const DeviceGroup& group : placement.groups) {
    const Quantity* const held = group.hardware->find("devices_per_rack");
    if (held == nullptr) return std::nullopt;
    devices[group.hardware->name] += group.devices();
    per_rack[group.hardware->name] = held->value;
  }
  double racks = 0;
  for (const auto& [name, n] : devices) racks += std::ceil(n * plans / per_rack[name]);
  return racks;
}

}  // namespace

double watts_from_text(std::string_view text, const std::string& what) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, size_t(text.data() + text.size() - end));
  const double scale = unit == "kW" ? 1e3 : unit == "MW" ? 1e6 : unit == "GW" ? 1e9 : 0;
  const double watts = value * scale;
  if (error != std::errc() || !(watts > 0) || !(watts <= kMostWatts)) {
    throw Error(ErrorCode::kInvalidInput,
                "{}: expected a number and kW, MW or GW, up to 1000GW, as in 750MW; got {}", what,
                text);
  }
  return watts;
}

SiteFill fill_site(const Candidate& plan, double users, double watts) {
  for (const DeviceGroup& group : plan.placement.groups) {
    for (const char* number : {"power", "pue"}) {
      if (group.hardware->find(number) != nullptr) continue;
      throw Error(ErrorCode::kUnsupported,
                  "{}: {}: missing from its profile; a site cannot be filled without it",
                  group.hardware->name, number);
    }
  }
  SiteFill site;
  site.plans = std::floor(watts / *plan.site_watts);
  if (site.plans < 1) {
    throw Error(ErrorCode::kResource, "site: {} draws {:.3f} MW with its cooling, {:.3f} are given",
                plan.name, *plan.site_watts / 1e6, watts / 1e6);
  }
  site.devices = site.plans * plan.devices;
  site.users = site.plans * users;
  site.racks = racks_of(plan.placement, site.plans);
  site.watts = site.plans * *plan.site_watts;
  site.it_watts = site.plans * *plan.watts;
  site.tokens_per_s = site.plans * plan.tokens_per_s;
  if (plan.usd_per_hour) site.usd_per_hour = site.plans * *plan.usd_per_hour;
  return site;
}

std::vector<Candidate> search_site(const ModelShape& model, const std::vector<Hardware>& hardware,
                                   Demand& demand) {
  const auto merit = [](const Candidate& c) {
    const double joules = c.site_watts ? *c.site_watts / c.tokens_per_s : 1 / c.tokens_per_s;
    return std::tuple(!c.fault.empty(), c.fault.empty() ? joules : c.short_by);
  };
  demand.frugal = true;
  std::vector<Candidate> best;
  double best_users = 1;
  for (double users = 1; users <= kMostUsers; users *= 2) {
    demand.users = users;
    std::vector<Candidate> all = search(model, hardware, demand);
    if (best.empty() || merit(all.front()) < merit(best.front())) {
      best = std::move(all);
      best_users = users;
    }
  }
  demand.users = best_users;
  return best;
}

}  // namespace sluice
