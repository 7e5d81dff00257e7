#include "plan/claims.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "plan/embedded.h"
#include "plan/hardware.h"
#include "plan/wafer.h"

namespace sluice {
namespace {

constexpr double kWaferError = 0.35;  // of the law of speed, left one out
constexpr size_t kMaxClaims = 10000;

struct Range {
  double low = 0, high = 0;
};

/// A number, or [low, high]. Positive.
Range range(const Config& check, const char* key) {
  const auto fail = [&] {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected a positive number or [low, high]",
                check.what(), key);
  };
  if (!check.has(key)) fail();
  const Json& value = check.json()[key];
  const bool is_pair = value.is_array() && value.size() == 2;
  const Json& low = is_pair ? value[0] : value;
  const Json& high = is_pair ? value[1] : value;
  if (!low.is_number() || !high.is_number()) fail();
  const Range out{low.get<double>(), high.get<double>()};
  if (!(out.low > 0 && out.low <= out.high && out.high <= 1e30)) fail();
  return out;
}

double positive(const Config& check, const char* key) {
  const Range r = range(check, key);
  if (r.low != r.high) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected one number, got a range", check.what(),
                key);
  }
  return r.low;
}

struct Named {
  std::string name;
  double value = 0;
};

/// {"name": number, ...} in order of the numbers.
std::vector<Named> choices(const Config& check, const char* key) {
  const Config object = check.object(key);
  std::vector<Named> list;
  for (const auto& [name, value] : object.json().items()) {
    list.push_back({name, positive(object, name.c_str())});
  }
  if (list.empty()) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected at least one choice", check.what(),
                key);
  }
  std::sort(list.begin(), list.end(),
            [](const Named& a, const Named& b) { return a.value < b.value; });
  return list;
}

Hardware hardware_of(const Config& check) {
  const std::string name = check.text("hardware");
  if (const std::optional<Hardware> hardware = find_hardware(name)) return *hardware;
  throw Error(ErrorCode::kNotFound, "{}: hardware: {} is not known; known are {}", check.what(),
              name, fmt::join(hardware_names(), ", "));
}

/// A speed of one user on wafers, by the law of the published speeds.
void check_speed(const Config& check, Verdict& v) {
  const double claimed = positive(check, "tokens_per_s");
  const Range layers = range(check, "layers"), hop = range(check, "hop_us");
  const Range accepted = range(check, "accepted");
  const WaferLaw law = fit_wafer(wafer_points());
  const double fastest = 1e6 / (law.token_us(layers.low) * (1 - kWaferError));
  const double budget = 1e6 / claimed;
  v.verdict = claimed <= fastest ? "consistent" : "inconsistent";
  v.why = fmt::format(
      "{:.0f} us per token; {:.1f} to {:.1f} us per layer. The law of {} published speeds gives "
      "{:.0f} tokens/s at {:.0f} layers, +-{:.0f} %",
      budget, budget / layers.high, budget / layers.low, wafer_points().size(),
      1e6 / law.token_us((layers.low + layers.high) / 2), (layers.low + layers.high) / 2,
      100 * kWaferError);
  for (double l : {layers.low, layers.high}) {
    for (double h : {hop.low, hop.high}) {
      for (double a : {accepted.low, accepted.high}) {
        const double left = budget * a - l * h;
        if (left <= 0) continue;
        v.sets.push_back(fmt::format(
            "{:.0f} layers, {:.0f} us per hop, {:.1f} tokens accepted: {:.1f} us per layer remain",
            l, h, a, left / l));
      }
    }
  }
}

/// Weights on so many devices.
void check_devices(const Config& check, Verdict& v) {
  const Hardware hardware = hardware_of(check);
  const double parameters = positive(check, "parameters");
  const Range devices = range(check, "devices");
  std::vector<std::string> counts;
  double nearest = 1e300;
  for (const Named& format : choices(check, "bytes_per_parameter")) {
    const DeviceCount n = devices_for(hardware, parameters * format.value);
    counts.push_back(
        fmt::format("{}: {:.0f} ({:.0f} to {:.0f})", format.name, n.value, n.best, n.worst));
    nearest = std::min(nearest, n.best / devices.high);
    if (n.best <= devices.high) {
      v.sets.push_back(fmt::format("{}: {:.0f} to {:.0f} for the weights, of {:.0f}", format.name,
                                   n.best, n.worst, devices.high));
    }
  }
  v.verdict = v.sets.empty() ? "inconsistent" : "consistent";
  v.why = fmt::format("{} that hold the weights: {}", hardware.name, fmt::join(counts, "; "));
  if (v.sets.empty()) v.why += fmt::format("; short by {:.1f} times", nearest);
}

/// A size that is only bounded by what the devices could hold.
void check_size(const Config& check, Verdict& v) {
  const Hardware hardware = hardware_of(check);
  const double claimed = positive(check, "parameters");
  const Range devices = range(check, "devices");
  const std::vector<Named> formats = choices(check, "bytes_per_parameter");
  devices_for(hardware, 1);
  const Quantity& memory = *hardware.find("memory_bytes");
  const Quantity& usable = *hardware.find("usable_memory");
  // At least half of the memory is taken by weights, or nobody would buy so much.
  const double low = devices.low * memory.low * usable.low / 2 / formats.back().value;
  const double high = devices.high * memory.high * usable.high / formats.front().value;
  v.verdict = claimed < low || claimed > high ? "inconsistent"
              : high / low > 2                ? "undetermined"
                                              : "consistent";
  v.why = fmt::format("{:.0f} to {:.0f} x {} could be bought for {:.2g} to {:.2g} parameters",
                      devices.low, devices.high, hardware.name, low, high);
  v.sets = {"bytes per parameter would decide"};
}

/// A value that a published fit gives from another claim.
void check_fit(const Config& check, Verdict& v) {
  const double claimed = positive(check, "value"), from = positive(check, "from_value");
  const double factor = positive(check, "factor"), exponent = positive(check, "exponent");
  const double error = positive(check, "error");
  const double derived = std::pow(factor / from, 1 / exponent);
  const bool independent = check.boolean("independent", false);
  const bool same = std::abs(factor / std::pow(claimed, exponent) / from - 1) <= error;
  v.verdict = same && !independent ? "circular" : same ? "consistent" : "inconsistent";
  v.why = fmt::format(
      "{:.0f} / x^{} = {:.0f} ({}) gives x = {:.0f}, and x = {:.0f} gives {:.0f}; the fit is off "
      "by "
      "{:.0f} % on average",
      factor, exponent, from, check.text("from"), derived, claimed,
      factor / std::pow(claimed, exponent), 100 * error);
  if (same && !independent) v.sets = {"an independent source would decide"};
}

/// A price per million output tokens against what the devices cost.
void check_price(const Config& check, Verdict& v) {
  const Hardware hardware = hardware_of(check);
  const double devices = positive(check, "devices"), price = positive(check, "usd_per_mtok");
  const double speed = positive(check, "tokens_per_s");
  const Range users = range(check, "users");
  const Quantity* const rent = hardware.find("usd_per_hour");
  if (rent == nullptr) {
    throw Error(ErrorCode::kUnsupported, "{}: hardware: {} has no usd_per_hour", check.what(),
                hardware.name);
  }
  const double usd = rent->value * devices, break_even = usd / (price * 3600 / 1e6);
  const double needed = break_even / speed;
  v.verdict = needed <= users.high ? "consistent" : "inconsistent";
  v.why = fmt::format(
      "{:.0f} x {:.2f} USD/h = {:.0f} USD/h, earned back by {:.0f} output tokens/s: {:.0f} users "
      "in "
      "flight at {:.0f} tokens/s each. {:.2f} USD per million tokens with {:.0f} users, {:.0f} "
      "with "
      "{:.0f}",
      devices, rent->value, usd, break_even, std::ceil(needed), speed,
      usd / (3600 * users.high * speed / 1e6), users.high, usd / (3600 * users.low * speed / 1e6),
      users.low);
  v.sets = {needed <= users.high
                ? fmt::format("at least {:.0f} users in flight; input tokens not counted",
                              std::ceil(needed))
                : fmt::format("{:.1f} times more users than there are", needed / users.high)};
}

/// "More stages only delay the first token."
void check_stages(const Config& check, Verdict& v) {
  const Range hop = range(check, "hop_us"), stages = range(check, "stages");
  const double budget = 1e6 / positive(check, "tokens_per_s");
  const std::string scope = check.text("scope");
  if (scope != "user" && scope != "all") {
    throw Error(ErrorCode::kInvalidInput, "{}: scope: expected user or all, got {}", check.what(),
                scope);
  }
  const double low = 100 * stages.low * hop.low / budget,
               high = 100 * stages.high * hop.high / budget;
  if (scope == "all") {
    v.verdict = "consistent";
    v.why = "all users get 1 / slowest stage once every stage has a batch, however many stages";
    v.sets = {"at least as many users in flight as stages"};
    return;
  }
  v.verdict = "inconsistent";
  v.why = fmt::format(
      "token t + 1 needs token t: every hop of every token counts, {:.0f} to {:.0f} % of {:.0f} us",
      low, high, budget);
  v.sets = {"it holds for one user only while speculation keeps the pipeline full"};
}

/// "200 times the bandwidth": of which pair?
void check_ratio(const Config& check, Verdict& v) {
  const double claimed = positive(check, "times"), within = positive(check, "within");
  std::vector<std::string> ratios;
  for (const Named& pair : choices(check, "ratios")) {
    ratios.push_back(fmt::format("{}: {:.3g}", pair.name, pair.value));
    if (std::abs(std::log(pair.value / claimed)) <= std::log(1 + within))
      v.sets.push_back(pair.name);
  }
  v.verdict = v.sets.empty() ? "inconsistent" : "consistent";
  v.why = fmt::format("{}", fmt::join(ratios, "; "));
}

/// "The cache would exhaust the memory": of which attention?
void check_cache(const Config& check, Verdict& v) {
  const Hardware hardware = hardware_of(check);
  const double tokens = positive(check, "users") * positive(check, "context");
  const Range devices = range(check, "devices"), weights = range(check, "weights_bytes");
  int exhausting = 0, n = 0;
  std::vector<std::string> counts;
  for (const Named& kind : choices(check, "cache_bytes_per_token")) {
    const double cache = tokens * kind.value;
    counts.push_back(
        fmt::format("{}: {:.1f}", kind.name, cache / hardware.find("memory_bytes")->value));
    const bool exhausts = devices_for(hardware, weights.low + cache).value > devices.high;
    exhausting += exhausts;
    ++n;
    v.sets.push_back(fmt::format("{}: {}", kind.name, exhausts ? "exhausts it" : "fits"));
  }
  v.verdict = exhausting == n ? "consistent" : exhausting == 0 ? "inconsistent" : "undetermined";
  v.why = fmt::format("memories of {} full of cache: {}", hardware.name, fmt::join(counts, "; "));
}

/// Mixers here and feed-forwards there: two hops per layer.
void check_split(const Config& check, Verdict& v) {
  const Range layers = range(check, "layers"), hop = range(check, "hop_us");
  const Range accepted = range(check, "accepted");
  const double budget = 1e6 / positive(check, "tokens_per_s");
  const double least = 2 * layers.low * hop.low / (budget * accepted.high);
  const double most = 2 * layers.high * hop.high / (budget * accepted.low);
  v.verdict = least >= 1 ? "inconsistent" : most >= 1 ? "undetermined" : "consistent";
  v.why = fmt::format(
      "two hops per layer take {:.0f} to {:.0f} % of the time of a token, before any arithmetic",
      100 * least, 100 * most);
  v.sets = {"the latency between the two machines would decide"};
}

struct Check {
  const char* type;
  void (*run)(const Config&, Verdict&);
};

constexpr Check kChecks[] = {
    {"speed", check_speed}, {"devices", check_devices}, {"size", check_size},
    {"fit", check_fit},     {"price", check_price},     {"stages", check_stages},
    {"ratio", check_ratio}, {"cache", check_cache},     {"split", check_split}};

}  // namespace

std::vector<Verdict> check_claims(const Json& json, const std::string& what) {
  const Config file(json, what);
  if (!file.has("claims") || !json["claims"].is_array() || json["claims"].size() > kMaxClaims) {
    throw Error(ErrorCode::kInvalidInput, "{}: claims: expected a list of at most {} claims", what,
                kMaxClaims);
  }
  std::vector<Verdict> verdicts;
  for (const Json& item : json["claims"]) {
    const Config claim(item, fmt::format("{}: claim {}", what, verdicts.size()));
    Verdict v{.id = claim.text("id"),
              .claim = claim.text("claim"),
              .kind = claim.text("kind"),
              .source = claim.text("source"),
              .date = claim.text("date", ""),
              .verdict = {},
              .why = {},
              .sets = {}};
    const Config check(claim.object("check").json(), fmt::format("{}: {}", what, v.id));
    const std::string type = check.text("type");
    const auto found = std::find_if(std::begin(kChecks), std::end(kChecks),
                                    [&](const Check& known) { return type == known.type; });
    if (found == std::end(kChecks)) {
      std::vector<std::string> types;
      for (const Check& known : kChecks) types.emplace_back(known.type);
      throw Error(ErrorCode::kInvalidInput, "{}: type: expected one of {}, got {}", check.what(),
                  fmt::join(types, ", "), type);
    }
    found->run(check, v);
    verdicts.push_back(std::move(v));
  }
  return verdicts;
}

OrderedJson to_json(const std::vector<Verdict>& verdicts) {
  OrderedJson json = OrderedJson::array();
  for (const Verdict& v : verdicts) {
    json.push_back({{"id", v.id},
                    {"claim", v.claim},
                    {"verdict", v.verdict},
                    {"why", v.why},
                    {"sets", v.sets},
                    {"kind", v.kind},
                    {"source", v.source},
                    {"date", v.date}});
  }
  return json;
}

Json shipped_claims() {
  const EmbeddedFile& file = claims_files().front();
  return parse_json(file.text, file.file);
}

}  // namespace sluice
