#include "plan/search.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "plan/first_token.h"

namespace sluice {
namespace {

constexpr double kMicro = 1e6;
constexpr int kWaysOfPipelines = 9;           // groups are numbered after them
constexpr double kHoursOfCapital = 4 * 8766;  // written off in four years

// GPUs whose measured runs the constants were fitted to.
constexpr std::string_view kChecked[] = {"H100", "H200",        "B200",
                                         "B300", "GB200-NVL72", "GB300-NVL72"};

/// Adds up a number of every device; empty if one has none.
template <typename Of>
std::optional<double> sum_of_devices(const Placement& placement, Of of) {
  double sum = 0;
  for (const DeviceGroup& group : placement.groups) {
    const std::optional<double> one = of(*group.hardware);
    if (!one) return std::nullopt;
    sum += *one * group.devices();
  }
  return sum;
}

/// Names the first limit that is not kept.
void judge(Candidate& c, const Demand& demand) {
  const auto fail = [&](double short_by, std::string fault) {
    if (!c.fault.empty() || short_by <= 1) return;
    c.fault = std::move(fault);
    c.short_by = short_by;
  };
  const double bytes = c.fullest.weights_bytes + c.fullest.cache_bytes;
  fail(bytes / c.fullest.usable_bytes, fmt::format("needs {:.3g} GB per device, {:.3g} are usable",
                                                   bytes / 1e9, c.fullest.usable_bytes / 1e9));
  if (demand.max_devices > 0) {
    fail(double(c.devices) / demand.max_devices,
         fmt::format("takes {} devices of at most {}", c.devices, demand.max_devices));
  }
  if (demand.min_speed > 0) {
    fail(demand.min_speed / c.user_tokens_per_s(),
         fmt::format("gives {:.1f} tokens/s per user of {:.9g}", c.user_tokens_per_s(),
                     demand.min_speed));
  }
  if (demand.max_first_ms > 0) {
    fail(c.first_ms / demand.max_first_ms,
         fmt::format("first token after {:.4g} ms of {:.4g}", c.first_ms, demand.max_first_ms));
  }
  if (demand.max_power > 0 && c.watts) {
    fail(*c.watts / demand.max_power,
         fmt::format("draws {:.4g} kW of {:.4g}", *c.watts / 1e3, demand.max_power / 1e3));
  }
  if (demand.max_usd > 0 && c.usd_per_hour) {
    fail(*c.usd_per_hour / demand.max_usd,
         fmt::format("costs {:.2f} USD/h of {:.2f}", *c.usd_per_hour, demand.max_usd));
  }
}

/// Smaller is better.
double rank(const Candidate& c, const Demand& demand) {
  if (demand.fastest) return c.token_us;
  if (demand.frugal && c.site_watts) return *c.site_watts / c.tokens_per_s;
  if (const std::optional<double> usd = c.usd_per_mtok()) return *usd;
  return c.devices / c.tokens_per_s;
}

Placement empty_placement(const Demand& demand) {
  Placement placement;
  placement.weights = demand.weights;
  placement.cache = demand.cache;
  placement.compute_bits = demand.compute_bits;
  return placement;
}

std::vector<double> block_bytes(const ModelShape& model, const Demand& demand) {
  std::vector<double> bytes;
  const double positions = demand.prompt + demand.output;
  for (const PartShape& part : model.blocks) {
    bytes.push_back(weights_bytes(part, demand.weights) +
                    demand.users * cache_bytes(part, positions, demand.cache));
  }
  bytes.push_back(weights_bytes(model.head, demand.weights));
  return bytes;
}

/// Devices that a stage must split over to hold its bytes: a power of two.
int tensor_for(const Hardware& hardware, double bytes, int most) {
  const double usable =
      hardware.find("memory_bytes")->value * hardware.find("usable_memory")->value;
  int tensor = 1;
  while (tensor < most && bytes / tensor > 0.97 * usable) tensor *= 2;
  return tensor;
}

std::vector<int> powers_of_two(int most) {
  std::vector<int> powers;
  for (int n = 1; n <= most; n *= 2) powers.push_back(n);
  return powers;
}

using SharedHardware = std::shared_ptr<const Hardware>;

/// A placement, and which of the ways on its hardware lead to it. What ways there are depends on
/// model and hardware only.
struct Way {
  Placement placement;
  std::vector<int> numbers;
};

/// Stages of a pipeline whose devices each hold a part of the model.
void add_pipelines(std::vector<Way>& out, const ModelShape& model, const SharedHardware& shared,
                   const Demand& demand) {
  const Hardware& hardware = *shared;
  const std::vector<double> bytes = block_bytes(model, demand);
  double total = 0;
  for (double b : bytes) total += b;
  const int parts = int(bytes.size());
  const int least = std::clamp(int(devices_for(hardware, total).value), 1, parts);
  std::map<int, std::vector<int>> ways;  // by the number of stages
  int way = 0;
  for (int n : {least, least + 1, least * 9 / 8 + 1, least * 5 / 4 + 1, least * 3 / 2, least * 2,
                model.n_layers / 2, model.n_layers, parts}) {
    ways[std::clamp(n, 1, parts)].push_back(way++);
  }
  for (const auto& [n, numbers] : ways) {
    Placement placement = empty_placement(demand);
    placement.plan = split_by_cost(bytes, n);
    for (const StagePlan& stage : placement.plan.stages) {
      double stage_bytes = stage.head ? bytes.back() : 0;
      if (&stage == &placement.plan.stages.front()) {
        stage_bytes += weights_bytes(model.embedding, demand.weights);
      }
      for (const auto& [first, last] : stage.blocks) {
        for (int b = first; b < last; ++b) stage_bytes += bytes[size_t(b)];
      }
      placement.groups.push_back(
          {.hardware = shared, .tensor = tensor_for(hardware, stage_bytes, 1 << 12)});
    }
    out.push_back({std::move(placement), numbers});
  }
}

/// Groups of devices that share every matrix or replicate the mixers, in one stage or several.
void add_groups(std::vector<Way>& out, const ModelShape& model, const SharedHardware& shared,
                const Demand& demand) {
  const Hardware& hardware = *shared;
  const bool has_experts = std::any_of(model.blocks.begin(), model.blocks.end(),
                                       [](const PartShape& p) { return p.n_experts > 0; });
  const std::vector<double> bytes = block_bytes(model, demand);
  std::map<int, Plan> plans;  // by the number of stages
  for (int stages : {1, 2, 4, 8}) {
    if (stages <= int(bytes.size())) plans[stages] = split_by_cost(bytes, stages);
  }
  int way = kWaysOfPipelines;
  for (int devices : powers_of_two(hardware.devices_per_node)) {
    for (int data : powers_of_two(has_experts ? devices : 1)) {
      for (int expert :
           has_experts&& devices > 1 ? std::vector<int>{1, devices} : std::vector<int>{1}) {
        if (data > 1 && expert == 1) continue;  // experts of several replicas spread over them
        for (const auto& [stages, plan] : plans) {
          if (stages > 1 && data > 1) continue;
          Placement placement = empty_placement(demand);
          placement.plan = plan;
          const DeviceGroup group{
              .hardware = shared, .tensor = devices / data, .data = data, .expert = expert};
          placement.groups.assign(size_t(stages), group);
          out.push_back({std::move(placement), {way++}});
        }
      }
    }
  }
}

bool is_mixer(const PartShape& part) { return !part.cache.empty() || part.state_values > 0; }

/// Mixers on stages of `mixers`, the rest on stages of `others`: a token goes to and fro.
void add_split(std::vector<Way>& out, const ModelShape& model, const SharedHardware& mixers,
               const SharedHardware& others, const Demand& demand) {
  const std::vector<double> bytes = block_bytes(model, demand);
  double total[2] = {0, bytes.back()};
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    total[is_mixer(model.blocks[b]) ? 0 : 1] += bytes[b];
  }
  int way = 0;
  for (double room : {1.0, 1.3, 2.0}) {
    Placement placement = empty_placement(demand);
    placement.plan.n_blocks = int(model.blocks.size());
    for (int side : {0, 1}) {
      const SharedHardware& shared = side == 0 ? mixers : others;
      const Hardware& hardware = *shared;
      const double needed = std::ceil(devices_for(hardware, total[side]).value * room);
      const int stages = int(std::clamp(needed, 1.0, double(model.n_layers)));
      std::vector<StagePlan> of_side(static_cast<size_t>(stages));
      std::vector<double> filled(size_t(stages), 0);
      double before = 0;
      for (int b = 0; b < int(bytes.size()); ++b) {
        const bool is_head = b == int(model.blocks.size());
        const bool here = is_head ? side == 1 : is_mixer(model.blocks[size_t(b)]) == (side == 0);
        if (!here) continue;
        const auto s = size_t(std::min(stages - 1.0, std::floor(before / total[side] * stages)));
        before += bytes[size_t(b)];
        filled[s] += bytes[size_t(b)];
        if (is_head)
          of_side[s].head = true;
        else
          of_side[s].blocks.emplace_back(b, b + 1);
      }
      for (size_t s = 0; s < of_side.size(); ++s) {
        if (of_side[s].blocks.empty() && !of_side[s].head) continue;
        of_side[s].name = fmt::format("{} {}", side == 0 ? "mixers" : "feed-forwards", s);
        placement.plan.stages.push_back(std::move(of_side[s]));
        placement.groups.push_back(
            {.hardware = shared, .tensor = tensor_for(hardware, filled[s] * 1.02, 1 << 12)});
      }
    }
    out.push_back({std::move(placement), {way++}});
  }
}

std::string name_of(const Placement& placement) {
  std::vector<std::pair<std::string, int>> devices;
  for (const DeviceGroup& group : placement.groups) {
    const std::string& name = group.hardware->name;
    if (devices.empty() || devices.back().first != name) devices.emplace_back(name, 0);
    devices.back().second += group.devices();
  }
  std::vector<std::string> words;
  for (const auto& [name, n] : devices) words.push_back(fmt::format("{} x {}", n, name));
  const DeviceGroup& first = placement.groups.front();
  std::string text = fmt::format("{}", fmt::join(words, " + "));
  if (placement.groups.size() > 1) text += fmt::format(", {} stages", placement.groups.size());
  if (first.tensor > 1) text += fmt::format(", tensor {}", first.tensor);
  if (first.data > 1) text += fmt::format(", data {}", first.data);
  if (first.expert > 1) text += fmt::format(", expert {}", first.expert);
  return text;
}

}  // namespace

std::optional<double> usd_per_hour(const Hardware& hardware) {
  if (const Quantity* const rent = hardware.find("usd_per_hour")) return rent->value;
  if (const Quantity* const capital = hardware.find("usd_capital")) {
    return capital->value / kHoursOfCapital;
  }
  return std::nullopt;
}

std::optional<double> Candidate::usd_per_mtok() const {
  if (!usd_per_hour) return std::nullopt;
  return *usd_per_hour / (3600 * tokens_per_s / 1e6);
}

std::optional<double> Candidate::joules_per_token() const {
  if (!watts) return std::nullopt;
  return *watts / tokens_per_s;
}

namespace {

double batches_of(const Demand& demand, int stages) {
  // Users travel in as many batches as there are stages, so that every stage has one.
  return std::clamp(demand.users, 1.0, double(stages));
}

/// What a placement is, has and costs, whatever the draft; without the placement, which the caller
/// has.
Candidate describe(const CostModel& cost, const Demand& demand) {
  const Placement& placement = cost.placement();
  Candidate c{.name = name_of(placement)};
  for (const DeviceGroup& group : placement.groups) c.devices += group.devices();
  double least_room = 1e300;
  for (int s = 0; s < int(placement.groups.size()); ++s) {
    const StageMemory memory = cost.memory(s, demand.users, demand.prompt + demand.output);
    const double room =
        memory.usable_bytes / std::max(1.0, memory.weights_bytes + memory.cache_bytes);
    if (room >= least_room) continue;
    least_room = room;
    c.fullest = memory;
    c.fullest_on = placement.groups[size_t(s)].hardware->name;
  }
  c.first_ms = first_token_us(cost, demand.prompt) / 1e3;
  c.usd_per_hour = sum_of_devices(placement, usd_per_hour);
  c.watts = sum_of_devices(placement, [](const Hardware& hardware) -> std::optional<double> {
    const Quantity* const power = hardware.find("power");
    return power == nullptr ? std::nullopt : std::optional(power->value);
  });
  c.site_watts = sum_of_devices(placement, [](const Hardware& hardware) -> std::optional<double> {
    const Quantity *const power = hardware.find("power"), *const pue = hardware.find("pue");
    if (power == nullptr || pue == nullptr) return std::nullopt;
    return power->value * pue->value;
  });
  return c;
}

/// Adds the time of a token, and what follows from it.
Candidate timed(Candidate c, const CostModel& cost, const Demand& demand) {
  const int stages = int(cost.placement().groups.size());
  const double batches = batches_of(demand, stages);
  const BatchShape batch = decode_shape(demand.users / batches, demand.prompt + demand.output / 2,
                                        1 + demand.draft.length);
  std::vector<double> stage_us(size_t(stages), 0);
  for (size_t hop = 0; hop < cost.hops().size(); ++hop) {
    const TimeSplit time = cost.hop_time(hop, batch);
    c.time += time;
    c.hops_us += cost.transfer_us(hop, batch);
    stage_us[size_t(cost.hops()[hop].stage)] += time.total_us();
  }
  c.slowest_stage_us = *std::max_element(stage_us.begin(), stage_us.end());
  // A guess costs one layer, and the drafter waits for none of the hops.
  c.draft_us = demand.draft.length * c.time.total_us() * 2 / double(cost.model().blocks.size());
  c.accepted = demand.draft.accepted;
  const double pass_us = c.time.total_us() + c.hops_us + c.draft_us;
  c.token_us = std::max(pass_us, batches * c.slowest_stage_us) / c.accepted;
  // Each guess that fills the pipe is a batch more: worth it while stages would be idle.
  for (int n = 2; demand.draft.fills_pipe && n <= std::min(stages, kMostInPipe); ++n) {
    const double us = std::max(pass_us, n * batches * c.slowest_stage_us) / pipe_gain(n);
    if (us >= c.token_us) continue;
    c.token_us = us;
    c.accepted = pipe_gain(n);
    c.in_pipe = n;
  }
  c.tokens_per_s = demand.users * c.user_tokens_per_s();
  return c;
}

std::vector<Way> ways_to_place(const ModelShape& model, const std::vector<Hardware>& hardware,
                               const Demand& demand) {
  std::vector<SharedHardware> shared;
  for (const Hardware& one : hardware) {
    devices_for(one, 1);  // has memory to load a model into
    shared.push_back(std::make_shared<const Hardware>(one));
  }
  std::vector<Way> ways;
  if (hardware.size() == 2) {
    add_split(ways, model, shared[0], shared[1], demand);
  } else {
    const std::string& family = hardware[0].family;
    if (family == "wafer" || family == "sram") {
      add_pipelines(ways, model, shared[0], demand);
    }
    if (family != "wafer") add_groups(ways, model, shared[0], demand);
  }
  return ways;
}

bool is_better(const Candidate& a, const Candidate& b, const Demand& demand) {
  if (a.fault.empty() != b.fault.empty()) return a.fault.empty();
  if (a.fullest.fits() != b.fullest.fits()) return a.fullest.fits();
  if (!a.fault.empty()) return a.short_by < b.short_by;
  return rank(a, demand) < rank(b, demand);
}

}  // namespace

Candidate price(const ModelShape& model, Placement placement, const Demand& demand) {
  const CostModel cost(model, std::move(placement));
  Candidate c = timed(describe(cost, demand), cost, demand);
  judge(c, demand);
  c.placement = cost.placement();
  return c;
}

double user_speed(const CostModel& cost, const Demand& demand) {
  return timed({}, cost, demand).user_tokens_per_s();
}

std::vector<Candidate> search(const ModelShape& model, const std::vector<Hardware>& hardware,
                              const Demand& demand) {
  std::vector<Candidate> candidates;
  for (Way& way : ways_to_place(model, hardware, demand)) {
    candidates.push_back(price(model, std::move(way.placement), demand));
    candidates.back().ways = std::move(way.numbers);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const Candidate& a, const Candidate& b) { return is_better(a, b, demand); });
  return candidates;
}

std::vector<Candidate> best_by_draft(const ModelShape& model, const std::vector<Hardware>& hardware,
                                     Demand demand, const std::vector<Draft>& drafts,
                                     const OnCandidate& on_candidate) {
  std::vector<Candidate> best(drafts.size());
  for (Way& way : ways_to_place(model, hardware, demand)) {
    const CostModel cost(model, std::move(way.placement));
    Candidate described = describe(cost, demand);
    described.ways = std::move(way.numbers);
    for (size_t i = 0; i < drafts.size(); ++i) {
      demand.draft = drafts[i];
      Candidate c = timed(described, cost, demand);
      judge(c, demand);
      if (on_candidate) on_candidate(c, cost);
      if (best[i].devices > 0 && !is_better(c, best[i], demand)) continue;
      best[i] = std::move(c);
      best[i].placement = cost.placement();
    }
  }
  return best;
}

int compute_bits_for(const WeightFormat& format) {
  const double widest = std::max(format.matrix, format.expert);
  return widest > 1.5 ? (format.expert < 0.75 ? 4 : 16) : widest > 0.75 ? 8 : 4;
}

int error_percent(const Hardware& hardware) {
  const bool is_checked =
      std::find(std::begin(kChecked), std::end(kChecked), hardware.name) != std::end(kChecked);
  return is_checked ? 20 : hardware.family == "wafer" ? 35 : 50;
}

}  // namespace sluice
