// A site: so many megawatts, filled with copies of a plan.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plan/search.h"

namespace sluice {

/// Watts of "750MW": a number and kW, MW or GW. Throws kInvalidInput starting with `what`.
double watts_from_text(std::string_view text, const std::string& what);

struct SiteFill {
  double plans = 0, devices = 0, users = 0;
  std::optional<double> racks;     // if the profiles say how many devices a rack holds
  double watts = 0, it_watts = 0;  // drawn by the site; by the devices alone
  double tokens_per_s = 0;         // of all users
  std::optional<double> usd_per_hour;

  double tokens_per_day() const { return tokens_per_s * 86400; }
};

/// As many copies of a plan, each for `users`, as `watts` feed and cool. Throws kUnsupported naming
/// a profile without power or PUE, kResource if not one copy can be fed.
SiteFill fill_site(const Candidate& plan, double users, double watts);

/// The plan and the number of users at a time that give a site the most tokens per joule: search()
/// for 1, 2, 4, ... users, of which `demand.users` becomes the best.
std::vector<Candidate> search_site(const ModelShape& model, const std::vector<Hardware>& hardware,
                                   Demand& demand);

}  // namespace sluice
