#include "plan/host.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sluice {
namespace {

/// Rows of a segment that attend together; fewer do not share what they read.
constexpr int kPromptRows = 8;
constexpr double kMb = 1e6;
/// Values of a block's rows from which on threads share them.
constexpr double kShared = 1e5;

/// The place of `x` between ascending points: the lower one's index and the share of the way to the
/// next; on a logarithmic scale.
struct Between {
  size_t low = 0, high = 0;
  double share = 0;
};

Between between(const std::vector<double>& points, double x) {
  const auto above = std::upper_bound(points.begin(), points.end(), x);
  if (above == points.begin()) return {0, 0, 0};
  const size_t low = size_t(above - points.begin()) - 1;
  if (above == points.end()) return {low, low, 0};
  const double share = std::log(x / points[low]) / std::log(points[low + 1] / points[low]);
  return {low, low + 1, share};
}

HostMatmul mix(const HostMatmul& a, const HostMatmul& b, double share) {
  HostMatmul out = a;
  out.op_us += share * (b.op_us - a.op_us);
  out.us_per_mb += share * (b.us_per_mb - a.us_per_mb);
  return out;
}

/// Points of one footprint, in order of rows.
HostMatmul at_rows(const std::vector<HostMatmul>& points, double rows) {
  std::vector<double> known;
  for (const HostMatmul& p : points) known.push_back(p.rows);
  const Between place = between(known, rows);
  HostMatmul out = mix(points[place.low], points[place.high], place.share);
  // More rows than were measured: in proportion.
  const double beyond = rows / known.back();
  if (beyond > 1) out.us_per_mb *= beyond;
  return out;
}

OrderedJson line_to_json(const HostLine& line) {
  return {{"fixed_us", line.fixed_us}, {"per_unit_us", line.per_unit_us}};
}

double number_in(const Config& config, const char* key, double low, double high) {
  const double value = config.number(key);
  if (!(value >= low && value <= high)) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected {} to {}, got {}", config.what(), key,
                low, high, value);
  }
  return value;
}

HostLine line_from_json(const Config& config, const char* key) {
  const Config line = config.object(key);
  return {number_in(line, "fixed_us", 0, 1e9), number_in(line, "per_unit_us", 0, 1e6)};
}

const Json& list_in(const Config& config, const char* key) {
  const auto found = config.json().find(key);
  if (found == config.json().end() || !found->is_array() || found->empty() ||
      found->size() > 10000) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected a list of 1 to 10000 entries",
                config.what(), key);
  }
  return *found;
}

/// What was measured, in a fixed order.
std::vector<double*> numbers(HostProfile& host) {
  std::vector<double*> all = {&host.attend_row_us, &host.join_us, &host.hop_us};
  for (HostMatmul& m : host.matmul) all.insert(all.end(), {&m.op_us, &m.us_per_mb});
  for (HostLine* line : {&host.norm, &host.norm_shared, &host.attend_decode, &host.attend_prompt,
                         &host.state, &host.sample, &host.scheduler}) {
    all.insert(all.end(), {&line->fixed_us, &line->per_unit_us});
  }
  return all;
}

}  // namespace

HostProfile median_of(const std::vector<HostProfile>& rounds) {
  std::vector<HostProfile> all = rounds;
  std::vector<std::vector<double>> values;  // of each number, one per round
  for (HostProfile& round : all) {
    const std::vector<double*> measured = numbers(round);
    values.resize(measured.size());
    for (size_t i = 0; i < measured.size(); ++i) values[i].push_back(*measured[i]);
  }
  const std::vector<double*> result = numbers(all.front());
  for (size_t i = 0; i < result.size(); ++i) {
    std::sort(values[i].begin(), values[i].end());
    *result[i] = values[i][values[i].size() / 2];
  }
  return all.front();
}

HostMatmul HostProfile::matmul_at(const std::string& type, double footprint, double rows) const {
  std::map<double, std::vector<HostMatmul>> by_footprint;
  for (const HostMatmul& point : matmul) {
    if (point.type == type) by_footprint[point.footprint].push_back(point);
  }
  if (by_footprint.empty()) {
    throw Error(ErrorCode::kNotFound,
                "host profile: matrices of type {} were not measured (sluice calibrate --types {})",
                type, type);
  }
  std::vector<double> footprints;
  std::vector<HostMatmul> at;
  for (auto& [bytes, points] : by_footprint) {
    std::sort(points.begin(), points.end(), [](auto& a, auto& b) { return a.rows < b.rows; });
    footprints.push_back(bytes);
    at.push_back(at_rows(points, rows));
  }
  const Between place = between(footprints, footprint);
  return mix(at[place.low], at[place.high], place.share);
}

OrderedJson host_to_json(const HostProfile& host) {
  OrderedJson matmul = OrderedJson::array(), reads = OrderedJson::array();
  for (const HostMatmul& m : host.matmul) {
    matmul.push_back({{"type", m.type},
                      {"footprint_bytes", m.footprint},
                      {"rows", m.rows},
                      {"op_us", m.op_us},
                      {"us_per_mb", m.us_per_mb}});
  }
  for (const auto& [bytes, gb_s] : host.read_gb_s) {
    reads.push_back({{"footprint_bytes", bytes}, {"gb_s", gb_s}});
  }
  return {{"kind", "measured"},
          {"source", "sluice calibrate"},
          {"isa", host.isa},
          {"threads", host.threads},
          {"compute", host.i8 ? "i8" : "f32"},
          {"cache", host.cache_f16 ? "f16" : "f32"},
          {"read", std::move(reads)},
          {"matmul", std::move(matmul)},
          {"norm", line_to_json(host.norm)},
          {"norm_shared", line_to_json(host.norm_shared)},
          {"attend_decode", line_to_json(host.attend_decode)},
          {"attend_row_us", host.attend_row_us},
          {"attend_prompt", line_to_json(host.attend_prompt)},
          {"state", line_to_json(host.state)},
          {"sample", line_to_json(host.sample)},
          {"scheduler", line_to_json(host.scheduler)},
          {"join_us", host.join_us},
          {"hop_us", host.hop_us}};
}

HostProfile host_from_json(const Config& config) {
  HostProfile host;
  host.isa = config.text("isa");
  host.threads = int(config.integer_in("threads", 1, 1 << 16));
  host.i8 = config.text("compute") == "i8";
  host.cache_f16 = config.text("cache") == "f16";
  for (const Json& item : list_in(config, "read")) {
    const Config read(item, config.what() + ": read");
    host.read_gb_s.emplace_back(number_in(read, "footprint_bytes", 1, 1e15),
                                number_in(read, "gb_s", 1e-6, 1e9));
  }
  for (const Json& item : list_in(config, "matmul")) {
    const Config point(item, config.what() + ": matmul");
    host.matmul.push_back({point.text("type"), number_in(point, "footprint_bytes", 1, 1e15),
                           int(point.integer_in("rows", 1, 1 << 20)),
                           number_in(point, "op_us", 0, 1e9),
                           number_in(point, "us_per_mb", 1e-6, 1e9)});
  }
  host.norm = line_from_json(config, "norm");
  host.norm_shared = line_from_json(config, "norm_shared");
  host.attend_decode = line_from_json(config, "attend_decode");
  host.attend_row_us = number_in(config, "attend_row_us", 0, 1e6);
  host.attend_prompt = line_from_json(config, "attend_prompt");
  host.state = line_from_json(config, "state");
  host.sample = line_from_json(config, "sample");
  host.scheduler = line_from_json(config, "scheduler");
  host.join_us = number_in(config, "join_us", 0, 1e9);
  host.hop_us = number_in(config, "hop_us", 0, 1e9);
  return host;
}

HostCost::HostCost(const HostProfile& host, const HostModel& model, const Plan& plan)
    : host_(host), model_(model) {
  if (size_t(plan.n_blocks) != model.blocks.size()) {
    throw Error(ErrorCode::kInvalidInput, "plan: n_blocks: expected {} for this model, got {}",
                model.blocks.size(), plan.n_blocks);
  }
  for (const HostPart& part : model.blocks) demand_types(part);
  demand_types(model.head);
  for (const Hop& hop : route(plan)) {
    HopParts& out = hops_.emplace_back();
    out.head = hop.head;
    for (int b = hop.first_block; b < hop.last_block; ++b) {
      const HostPart& part = model.blocks[size_t(b)];
      const size_t index = size_t(std::find(parts_.begin(), parts_.end(), part) - parts_.begin());
      if (index == parts_.size()) parts_.push_back(part);
      const auto same = std::find_if(out.parts.begin(), out.parts.end(),
                                     [&](const auto& p) { return p.first == index; });
      if (same == out.parts.end()) {
        out.parts.emplace_back(index, 1);
      } else {
        ++same->second;
      }
    }
  }
}

/// A batch under way cannot be taken back, so what is missing is said before.
void HostCost::demand_types(const HostPart& part) const {
  for (const HostOp& op : part.ops) matmul_at(op.type, 1);
}

const HostMatmul& HostCost::matmul_at(const std::string& type, double rows) const {
  const auto found = known_.find({type, rows});
  if (found != known_.end()) return found->second;
  return known_.emplace(std::pair(type, rows), host_.matmul_at(type, model_.bytes, rows))
      .first->second;
}

double HostCost::op_us(const HostOp& op, double n_rows) const {
  if (op.n_experts == 0) {
    const HostMatmul& m = matmul_at(op.type, n_rows);
    return m.op_us + m.us_per_mb * op.bytes / kMb;
  }
  // Rows choose their experts independently; each expert that is chosen is read once.
  const double missed = std::pow(1 - double(op.n_active) / op.n_experts, n_rows);
  const double n_touched = op.n_experts * (1 - missed);
  const double rows_each = std::max(1.0, n_rows * op.n_active / n_touched);
  const HostMatmul& m = matmul_at(op.type, rows_each);
  return m.op_us + m.us_per_mb * op.bytes * n_touched / kMb;
}

double HostCost::part_us(const HostPart& part, const BatchLoad& load, double n_rows) const {
  const double values = part.row_values * n_rows;
  double us = (values < kShared ? host_.norm : host_.norm_shared).at(values);
  for (const HostOp& op : part.ops) us += op_us(op, n_rows);
  if (part.state_floats > 0) us += host_.state.at(part.state_floats * n_rows);
  if (part.attend_values == 0) return us;
  double decode = 0, prompt = 0;  // positions seen, summed over rows
  int n_decoding = 0;
  for (const LoadSegment& s : load.segments) {
    const double first = s.first_position + 1, last = s.first_position + s.n_rows;
    const double seen =
        part.window > 0 ? std::min((first + last) / 2, double(part.window)) : (first + last) / 2;
    (s.n_rows < kPromptRows ? decode : prompt) += seen * s.n_rows;
    if (s.n_rows < kPromptRows) n_decoding += s.n_rows;
  }
  const HostLine& line = prompt > decode ? host_.attend_prompt : host_.attend_decode;
  return us + line.fixed_us + n_decoding * host_.attend_row_us +
         part.attend_values *
             (decode * host_.attend_decode.per_unit_us + prompt * host_.attend_prompt.per_unit_us);
}

double HostCost::head_us(const BatchLoad& load) const {
  if (load.n_sampled == 0) return 0;
  const double n_rows = load.n_sampled * (model_.fine_head ? 2.0 : 1.0);
  return part_us(model_.head, {}, n_rows) + load.n_sampled * host_.sample.at(model_.vocab);
}

void HostCost::price(const BatchLoad& load, BatchPrice& price) const {
  std::vector<double> part(parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i) part[i] = part_us(parts_[i], load, load.n_rows);
  for (size_t h = 0; h < hops_.size(); ++h) {
    price.hop_us[h] = hops_[h].head ? head_us(load) : 0;
    for (const auto& [index, n] : hops_[h].parts) price.hop_us[h] += n * part[index];
    price.link_us[h] = host_.hop_us;
  }
  price.scheduler_us = host_.scheduler.at(double(load.segments.size()));
  price.draft_us = 0;  // looking up takes next to nothing
}

}  // namespace sluice
