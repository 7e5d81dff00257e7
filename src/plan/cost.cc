#include "plan/cost.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sluice {
namespace {

constexpr double kMicro = 1e6;
constexpr double kActivationBytes = 2;  // frames and partial sums travel in 16 bits
constexpr double kTokenBytes = 4, kStateBytes = 4;
constexpr double kMaxDevices = 1 << 20;

double require(const Hardware& hardware, const char* number) {
  const Quantity* const found = hardware.find(number);
  if (found == nullptr) {
    throw Error(ErrorCode::kUnsupported, "{}: {}: missing from its profile; expected a number",
                hardware.name, number);
  }
  return found->value;
}

/// The arithmetic of this width; where there is none, the next wider one. Weights of 4 bits that
/// the hardware cannot multiply are unpacked to 16.
double peak_flops(const Hardware& hardware, int bits) {
  if (bits == 4 && hardware.find("peak_fp4") == nullptr && hardware.find("peak_bf16") != nullptr) {
    bits = 16;
  }
  constexpr std::pair<int, const char*> kPeaks[] = {
      {4, "peak_fp4"}, {8, "peak_fp8"}, {16, "peak_bf16"}};
  for (const auto& [width, number] : kPeaks) {
    if (width >= bits && hardware.find(number) != nullptr) return require(hardware, number);
  }
  for (const auto& [width, number] : kPeaks) {
    // A maker that states one narrow peak only: twice the width, half the rate.
    if (hardware.find(number) != nullptr) return require(hardware, number) * width / bits;
  }
  return require(hardware, "peak_bf16");
}

/// The fullest of `n_groups` groups against the mean, when `load` experts (or rows) fall on them at
/// random. Of the places that it could fall on, `taken` is the share that it does: where all
/// experts are touched, groups are alike.
double imbalance(int n_groups, double load, double taken) {
  if (n_groups <= 1 || load <= 0) return 1;
  // Mean of the largest of 1, 2, 4, ... standard normals.
  constexpr double kLargest[] = {0, 0.564, 1.029, 1.424, 1.766, 2.07, 2.34, 2.59};
  const double at = std::min(std::log2(double(n_groups)), std::size(kLargest) - 1.0);
  const size_t low = std::min(size_t(at), std::size(kLargest) - 2);
  const double largest = std::lerp(kLargest[low], kLargest[low + 1], at - double(low));
  const double mean = load / n_groups;
  const double worst = mean + largest * std::sqrt(mean * std::max(0.0, 1 - taken));
  return std::min(std::max(worst, 1.0), std::max(load, 1.0)) / mean;
}

bool same_cost(const PartShape& a, const PartShape& b) {
  const auto same_term = [](const CacheTerm& x, const CacheTerm& y) {
    return x.bytes_16bit == y.bytes_16bit && x.positions == y.positions && x.window == y.window &&
           x.read == y.read;
  };
  return a.kind == b.kind && a.matrix == b.matrix && a.other == b.other && a.expert == b.expert &&
         a.n_experts == b.n_experts && a.n_active == b.n_active &&
         a.state_values == b.state_values && a.attention_values == b.attention_values &&
         a.max_visible == b.max_visible &&
         std::equal(a.cache.begin(), a.cache.end(), b.cache.begin(), b.cache.end(), same_term);
}

/// Of what every token reads: all but the routed experts.
double dense_bytes(const PartShape& part, const WeightFormat& format) {
  const bool is_table = part.kind == "embedding" || part.kind == "head";
  return part.matrix * (is_table ? format.embedding : format.matrix) + part.other * format.other;
}

bool is_latent(const PartShape& part) {
  return part.kind.starts_with("mla") || part.kind.starts_with("compressed");
}

double cache_split(const PartShape& part, const DeviceGroup& group) {
  return std::min(double(group.tensor), std::max(1.0, part.cache_heads));
}

}  // namespace

BatchShape decode_shape(double sequences, double context, double rows) {
  return {.rows = sequences * rows,
          .sequences = sequences,
          .visible = sequences * rows * (context + (rows + 1) / 2),
          .cached = sequences * context,
          .logits = sequences * rows};
}

BatchShape prefill_shape(double rows, double context) {
  return {.rows = rows,
          .sequences = 1,
          .visible = rows * (context + (rows + 1) / 2),
          .cached = context,
          .logits = 1,
          .prompts = 1};
}

BatchShape& BatchShape::operator+=(const BatchShape& other) {
  rows += other.rows;
  sequences += other.sequences;
  visible += other.visible;
  cached += other.cached;
  logits += other.logits;
  prompts += other.prompts;
  return *this;
}

BatchShape operator+(BatchShape a, const BatchShape& b) { return a += b; }

TimeSplit& TimeSplit::operator+=(const TimeSplit& other) {
  compute_us += other.compute_us;
  memory_us += other.memory_us;
  collective_us += other.collective_us;
  launch_us += other.launch_us;
  return *this;
}

Efficiency efficiency_of(const Hardware& hardware, const Calibration& calibration,
                         const std::string& engine, int compute_bits) {
  Efficiency efficiency;
  if (hardware.family == "gpu" || hardware.family == "tpu") {
    const auto& value = calibration.values;
    const auto by_engine = [&](Constant first) { return calibration.by_engine(first, engine); };
    // Kernels that route and multiply at once are written for arithmetic of 4 bits.
    const bool fused = compute_bits == 4 && hardware.find("peak_fp4") != nullptr;
    efficiency = {.memory = value[kMemory],
                  .expert_memory = value[kExpertMemory],
                  .cache_memory = value[kCacheMemory],
                  .compute = value[kCompute],
                  .expert_compute = value[kExpertCompute],
                  .link = value[kLink],
                  .block_us = by_engine(kBlockTrtllm),
                  .expert_us = value[kExpertBlock] * (fused ? value[kExpertBlockFp4] : 1),
                  .latent_us = value[kLatentBlock],
                  .indexer_us = value[kIndexerBlock],
                  .recurrent_us = value[kRecurrentBlock],
                  .collective_us = value[kCollective],
                  .step_us = value[kStep],
                  .sequence_us = value[kSequence],
                  .host_block_us = by_engine(kHostBlock),
                  .host_expert_us = value[kHostExpertBlock],
                  .host_latent_us = value[kHostLatentBlock]};
  }
  if (const Quantity* const layer = hardware.find("layer_latency")) {
    efficiency.block_us = layer->value * kMicro / 2;  // a block is half a layer
  }
  if (const Quantity* const token = hardware.find("token_latency")) {
    efficiency.token_us = token->value * kMicro;
  }
  return efficiency;
}

CostModel::CostModel(ModelShape model, Placement placement)
    : model_(std::move(model)), placement_(std::move(placement)) {
  if (placement_.plan.n_blocks != int(model_.blocks.size())) {
    throw Error(ErrorCode::kInvalidInput, "plan: n_blocks: expected {}, the blocks of {}, got {}",
                model_.blocks.size(), model_.name, placement_.plan.n_blocks);
  }
  if (placement_.groups.size() != placement_.plan.stages.size()) {
    throw Error(ErrorCode::kInvalidInput, "plan: expected a group of devices for each of {} stages",
                placement_.plan.stages.size());
  }
  hops_ = route(placement_.plan);
  for (const DeviceGroup& group : placement_.groups) {
    if (group.tensor < 1 || group.data < 1 || group.expert < 1 ||
        double(group.tensor) * group.data > kMaxDevices || group.expert > group.devices()) {
      throw Error(
          ErrorCode::kInvalidInput,
          "plan: expected tensor, data and expert of at least 1, expert <= tensor x data <= "
          "{}, got {}, {}, {}",
          kMaxDevices, group.tensor, group.data, group.expert);
    }
  }
  look_up_devices();
  for (const Hop& hop : hops_) {
    std::vector<Kind>& kinds = kinds_.emplace_back();
    for (int b = hop.first_block; b < hop.last_block; ++b) {
      const PartShape& part = model_.blocks[size_t(b)];
      const auto same = std::find_if(kinds.begin(), kinds.end(),
                                     [&](const Kind& kind) { return same_cost(kind.part, part); });
      if (same == kinds.end())
        kinds.push_back({part, 1});
      else
        ++same->count;
    }
  }
  calibrate(shipped_calibration());
}

void CostModel::look_up_devices() {
  devices_.clear();
  for (const DeviceGroup& group : placement_.groups) {
    const size_t s = devices_.size();
    const bool is_alike = s > 0 && placement_.groups[s - 1].hardware == group.hardware &&
                          placement_.groups[s - 1].devices() == group.devices();
    devices_.push_back(is_alike ? devices_.back() : device_of(group));
  }
}

void CostModel::exchange(const std::shared_ptr<const Hardware>& hardware) {
  for (DeviceGroup& group : placement_.groups) {
    if (group.hardware->name == hardware->name) group.hardware = hardware;
  }
  look_up_devices();
  calibrate(shipped_calibration());
}

CostModel::Device CostModel::device_of(const DeviceGroup& group) const {
  const Hardware& hardware = *group.hardware;
  const bool has_stages = placement_.plan.stages.size() > 1;
  Device device{
      .efficiency = {},
      .peak = peak_flops(hardware, placement_.compute_bits),
      .attention_peak = peak_flops(hardware, 16),
      .bandwidth = require(hardware, "memory_bandwidth"),
      .usable_bytes = require(hardware, "memory_bytes") * require(hardware, "usable_memory")};
  if (has_stages || group.devices() > 1) device.link = require(hardware, "link_bandwidth");
  if (has_stages) device.hop_latency = require(hardware, "hop_latency");
  // Decoding from on-chip memory is bound by latency: without that number, nothing is known.
  if (hardware.family == "wafer" || hardware.family == "sram") require(hardware, "layer_latency");
  return device;
}

void CostModel::calibrate(const Calibration& calibration) {
  for (size_t s = 0; s < devices_.size(); ++s) {
    Efficiency& reached = devices_[s].efficiency;
    if (s > 0 && placement_.groups[s].hardware == placement_.groups[s - 1].hardware) {
      reached = devices_[s - 1].efficiency;
      continue;
    }
    reached = efficiency_of(*placement_.groups[s].hardware, calibration, placement_.engine,
                            placement_.compute_bits);
    // A fixed time per token is latency on the way, not work of one stage.
    reached.block_us += reached.token_us / double(model_.blocks.size());
  }
}

TimeSplit CostModel::part_time(const PartShape& part, int stage, const BatchShape& batch) const {
  const DeviceGroup& group = placement_.groups[size_t(stage)];
  const Device& device = devices_[size_t(stage)];
  const Efficiency& reached = device.efficiency;
  const WeightFormat& format = placement_.weights;
  const double bandwidth = device.bandwidth / kMicro;
  const double flops = reached.compute * device.peak / kMicro;
  const double expert_flops = reached.expert_compute * device.peak / kMicro;
  const double attention_flops = reached.compute * device.attention_peak / kMicro;
  const double devices = group.devices(), rows = part.kind == "head" ? batch.logits : batch.rows;
  TimeSplit time{.collective_us = collective_us(part, stage, rows)};
  const auto add_slower = [&](double memory_us, double compute_us) {
    (memory_us >= compute_us ? time.memory_us : time.compute_us) += std::max(memory_us, compute_us);
  };

  double memory_us = dense_bytes(part, format) / group.tensor / (reached.memory * bandwidth);
  double compute_us = 2 * (part.matrix + part.other) * rows / devices / flops;
  if (part.n_experts > 0) {
    const double touched = touched_experts(part, rows);
    memory_us += touched * part.expert * format.expert / devices *
                 imbalance(group.expert, touched, touched / part.n_experts) /
                 (reached.expert_memory * bandwidth);
    compute_us += 2 * part.expert * part.n_active * rows / devices *
                  imbalance(group.expert, part.n_active * rows, 0) / expert_flops;
  }
  add_slower(memory_us, compute_us);

  if (batch.sequences > 0 && (!part.cache.empty() || part.state_values > 0)) {
    const double context = batch.rows > 0 ? batch.visible / batch.rows : 0;
    const double seen = part.max_visible > 0 ? std::min(context, part.max_visible) : context;
    const double read = cache_read_bytes(part, batch.cached / batch.sequences,
                                         batch.rows / batch.sequences, placement_.cache);
    const double cache = batch.sequences * read / (group.data * cache_split(part, group));
    const double state = 2 * batch.sequences * kStateBytes * part.state_values / devices;
    add_slower((cache + state) / (reached.cache_memory * bandwidth),
               2 * part.attention_values * seen * rows / devices / attention_flops);
  }
  return time;
}

double CostModel::collective_us(const PartShape& part, int stage, double rows) const {
  const DeviceGroup& group = placement_.groups[size_t(stage)];
  if (group.devices() == 1) return 0;
  const Efficiency& efficiency = devices_[size_t(stage)].efficiency;
  const double link = efficiency.link * devices_[size_t(stage)].link / kMicro;
  const double frame = rows / group.data * model_.dim * kActivationBytes;
  if (part.n_experts > 0 && group.data > 1) {
    // Rows travel to their experts and back: each to at most as many groups as it has experts.
    const double copies = std::min(part.n_active, group.expert);
    return 2 * (efficiency.collective_us + frame * std::max(1.0, copies) / group.tensor / link);
  }
  if (group.tensor == 1) return 0;
  const double share = (group.tensor - 1.0) / group.tensor;
  return efficiency.collective_us + 2 * share * frame / link;  // all-reduce
}

double CostModel::launch_us(const PartShape& part, int stage) const {
  const Efficiency& reached = devices_[size_t(stage)].efficiency;
  double us = reached.block_us;
  if (part.n_experts > 0) us += reached.expert_us;
  if (part.state_values > 0) us += reached.recurrent_us;
  if (is_latent(part)) us += reached.latent_us;
  if (part.kind.ends_with("indexer")) us += reached.indexer_us;
  return us;
}

double CostModel::host_us(const PartShape& part, int stage) const {
  const Efficiency& reached = devices_[size_t(stage)].efficiency;
  double us = reached.host_block_us;
  if (part.n_experts > 0) us += reached.host_expert_us;
  if (is_latent(part)) us += reached.host_latent_us;
  return us;
}

TimeSplit CostModel::hop_time(size_t hop, const BatchShape& batch) const {
  const Hop& part = hops_[hop];
  TimeSplit time;
  double host = 0;
  for (const Kind& kind : kinds_[hop]) {
    const TimeSplit one = part_time(kind.part, part.stage, batch);
    time.compute_us += kind.count * one.compute_us;
    time.memory_us += kind.count * one.memory_us;
    time.collective_us += kind.count * one.collective_us;
    time.launch_us += kind.count * launch_us(kind.part, part.stage);
    host += kind.count * host_us(kind.part, part.stage);
  }
  if (batch.prompts > 0) time.launch_us += std::max(0.0, host - time.total_us());
  if (!part.head) return time;
  const Efficiency& reached = devices_[size_t(part.stage)].efficiency;
  if (batch.logits > 0) time += part_time(model_.head, part.stage, batch);
  time.launch_us += reached.step_us + reached.sequence_us * (batch.sequences - batch.prompts);
  return time;
}

double CostModel::transfer_us(size_t hop, const BatchShape& batch) const {
  const bool is_last = hop + 1 == hops_.size();
  const int from = hops_[hop].stage, to = hops_[is_last ? 0 : hop + 1].stage;
  if (from == to) return 0;
  const Device &a = devices_[size_t(from)], &b = devices_[size_t(to)];
  const double bytes =
      is_last ? batch.logits * kTokenBytes : batch.rows * model_.dim * kActivationBytes;
  return (std::max(a.hop_latency, b.hop_latency) + bytes / std::min(a.link, b.link)) * kMicro;
}

TimeSplit CostModel::stage_time(int stage, const BatchShape& batch) const {
  TimeSplit time;
  for (size_t i = 0; i < hops_.size(); ++i) {
    if (hops_[i].stage == stage) time += hop_time(i, batch);
  }
  return time;
}

double CostModel::latency_us(const BatchShape& batch) const {
  double total = 0;
  for (size_t i = 0; i < hops_.size(); ++i) {
    total += hop_time(i, batch).total_us() + transfer_us(i, batch);
  }
  return total;
}

StageMemory CostModel::memory(int stage, double users, double positions) const {
  const DeviceGroup& group = placement_.groups[size_t(stage)];
  const StagePlan& plan = placement_.plan.stages[size_t(stage)];
  const WeightFormat& format = placement_.weights;
  const double whole = std::ceil(positions / model_.page_positions) * model_.page_positions;
  StageMemory memory{.usable_bytes = devices_[size_t(stage)].usable_bytes};
  const auto add_weights = [&](const PartShape& part) {
    memory.weights_bytes += dense_bytes(part, format) / group.tensor +
                            part.expert * part.n_experts * format.expert / group.devices();
  };
  for (const auto& [first, last] : plan.blocks) {
    for (int b = first; b < last; ++b) {
      const PartShape& part = model_.blocks[size_t(b)];
      add_weights(part);
      memory.cache_bytes += users / group.data * cache_bytes(part, whole, placement_.cache) /
                            cache_split(part, group);
    }
  }
  const bool has_embedding = hops_.front().stage == stage;
  if (has_embedding) add_weights(model_.embedding);
  if (plan.head && !(model_.tied && has_embedding)) add_weights(model_.head);
  return memory;
}

}  // namespace sluice
