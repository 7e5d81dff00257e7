#include "plan/silicon.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "plan/catalog.h"
#include "plan/describe.h"

namespace sluice {
namespace {

constexpr size_t kMaxRows = 1 << 20;
constexpr double kLastTtftLoad = 0.8;  // above it, no first-token time is promised
constexpr double kUnknownWorkers = 4;  // decoding instances of a small disaggregated run
constexpr double kMeanWait = 0.5;      // of the others' prompts, if all ask at once
constexpr int kMaxDevices = 1 << 12;
constexpr double kMeanLength = 0.9;  // of the longest, if lengths are uniform from 80 %
constexpr double kFirstRound = 0.1;  // of the requests: each user asks ten times

/// One line of CSV; quotes may hold commas. Advances `text` behind it. `where`: for errors.
std::vector<std::string> next_line(std::string_view& text, const std::string& where) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  size_t i = 0;
  for (; i < text.size() && (quoted || text[i] != '\n'); ++i) {
    const char c = text[i];
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  if (quoted) throw Error(ErrorCode::kInvalidInput, "{}: a quote is not closed", where);
  text.remove_prefix(std::min(text.size(), i + 1));
  return cells;
}

/// A line, with errors that name it.
class Line {
 public:
  Line(const std::map<std::string, size_t>& columns, std::vector<std::string> cells,
       std::string what)
      : columns_(columns), cells_(std::move(cells)), what_(std::move(what)) {}

  std::string text(const std::string& column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() || found->second >= cells_.size() ? "" : cells_[found->second];
  }
  double number(const std::string& column, double high) const {
    const std::string cell = text(column);
    if (cell.empty()) return 0;
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size() || !(value >= 0) || value > high) {
      throw Error(ErrorCode::kInvalidInput, "{}: {}: expected a number from 0 to {}, got {}", what_,
                  column, high, cell);
    }
    return value;
  }
  int count(const std::string& column) const { return int(number(column, 1 << 16)); }

 private:
  const std::map<std::string, size_t>& columns_;
  std::vector<std::string> cells_;
  std::string what_;
};

/// The first positive number right behind a `key` in `text`; 0 if there is none.
double number_after(const std::string& text, const std::string& key) {
  for (size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    double value = 0;
    std::from_chars(text.data() + at + key.size(), text.data() + text.size(), value);
    if (value > 0 && value < 1e9) return value;
  }
  return 0;
}

/// DeepSeek-R1's runs mix its prediction layer on and off; engine versions and days tell them
/// apart.
bool infer_speculation(const SiliconRow& row) {
  if (row.model.find("DeepSeek-R1") == row.model.npos || row.engine_version.empty()) return false;
  if (row.model.find("NVFP4") != row.model.npos) return false;
  if (row.disaggregated && row.engine == "sglang") {
    return row.engine_version != "0.5.8" &&
           (row.engine_version != "0.5.8.post1" || row.system != "gb200");
  }
  if (row.disaggregated) return true;
  if (row.engine != "trtllm") return false;
  const auto has = [&](const char* part) {
    return row.engine_version.find(part) != std::string::npos;
  };
  return has("rc6.post3") || (has("rc2.post2") && row.measured_on >= "2026");
}

/// The label DeepSeek-V3 marks copies of R1's runs without the prediction layer: what repeats such
/// a run to the digit is the same run.
void unmark_copies(std::vector<SiliconRow>& rows) {
  const auto run = [](const SiliconRow& row) {
    return fmt::format("{}|{:.4f}|{:.4f}", row.system, row.tpot_ms, row.ttft_ms);
  };
  std::set<std::string> plain;
  for (const SiliconRow& row : rows) {
    if (row.model.ends_with("/DeepSeek-V3")) plain.insert(run(row));
  }
  for (SiliconRow& row : rows) {
    if (plain.contains(run(row))) row.speculative = false;
  }
}

/// The first of `known` that is part of `text`, whatever the case; `otherwise` if none is.
std::string known_part(std::string text, std::initializer_list<const char*> known,
                       const std::string& otherwise) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  for (const char* part : known) {
    if (text.find(part) != text.npos) return part;
  }
  return otherwise;
}

SiliconRow read_row(const Line& line) {
  const std::string engine = line.text("backend"), precision = line.text("precision");
  const bool is_tensorrt = known_part(engine, {"trt", "tensorrt"}, "") != "";
  SiliconRow row{
      .id = line.text("id"),
      .model = line.text("model_path"),
      .system = line.text("system"),
      .engine = is_tensorrt ? "trtllm" : known_part(engine, {"sglang", "vllm"}, engine),
      .engine_version = line.text("backend_version"),
      .precision = known_part(
          precision, {"fp8", "fp4", "int4", "bf16", "bfloat16", "fp16", "float16"}, precision),
      .measured_on = {}};
  const std::string source = line.text("silicon_data_source");
  row.disaggregated = line.text("mode") == "disagg";
  row.equal_lengths = source.find("data/") != source.npos;
  row.prompt = line.number("isl", 1e9);
  row.output = line.number("osl", 1e9);
  row.concurrency = number_after(source, "silicon_concurrency=");
  if (row.concurrency == 0) row.concurrency = number_after(row.id, "_c");
  if (const size_t at = source.find("measured="); at != source.npos) {
    row.measured_on = source.substr(at + 9, 10);
  }
  const std::string side = row.disaggregated ? "decode_" : "";
  row.tensor = std::max(1, line.count(side + "tp_size"));
  row.data = std::max(1, line.count(side + "attention_dp_size"));
  row.expert_tensor = std::max(1, line.count(side + "moe_tp_size"));
  row.expert = std::max(1, line.count(side + "moe_ep_size"));
  row.workers = line.count("decode_num_workers");
  row.ttft_ms = line.number("silicon_ttft_ms", 1e9);
  row.tpot_ms = line.number("silicon_tpot_ms", 1e9);
  row.speculative = infer_speculation(row);
  return row;
}

/// The published config, also of a copy in another precision.
std::optional<Config> config_of(std::string name) {
  name = name.substr(name.rfind('/') == name.npos ? 0 : name.rfind('/') + 1);
  for (int cut = 0; cut < 3; ++cut) {
    for (const std::string& variant : {name, "Meta-" + name}) {
      if (std::optional<Config> config = catalog_config(variant)) return config;
    }
    const size_t dash = name.rfind('-');
    if (dash == name.npos) break;
    name.resize(dash);
  }
  return std::nullopt;
}

bool has_experts(const ModelShape& model) {
  return std::any_of(model.blocks.begin(), model.blocks.end(),
                     [](const PartShape& part) { return part.n_experts > 0; });
}

/// A layout that cannot hold the weights was not recorded as it was: the next larger one that can.
SiliconLayout holding(SiliconLayout layout, const Hardware& hardware, double weights_bytes,
                      bool has_experts) {
  const Quantity* const bytes = hardware.find("memory_bytes");
  const Quantity* const usable = hardware.find("usable_memory");
  if (bytes == nullptr || usable == nullptr) return layout;
  const double room = bytes->value * usable->value;
  while (weights_bytes > room * layout.tensor * layout.data &&
         layout.tensor * layout.data < kMaxDevices) {
    (has_experts ? layout.data : layout.tensor) *= 2;
    if (has_experts) layout.expert = layout.tensor * layout.data;
  }
  return layout;
}

WeightFormat format_of(const SiliconRow& row, const ModelShape& model) {
  constexpr double kNvfp4 = 4.5 / 8;
  if (row.precision == "fp8") return {"8 bit", 1, 1, 2, 2};
  if (row.precision != "fp4" && row.precision != "int4") return {};
  // Experts carry the 4 bits; where the published files keep the rest at 16, engines do, too.
  WeightFormat format{"4 bit", kNvfp4, kNvfp4, 2, 2};
  if (!has_experts(model)) return format;
  const bool published_in_4_bits = model.published.expert < 1 && model.published.matrix >= 2;
  format.matrix = published_in_4_bits ? 2 : 1.25;  // attention at 16 bits, shared experts at 4
  return format;
}

/// Steps that a new request waits, on average, because the recipe of its run makes the engine
/// collect requests (github.com/SemiAnalysisAI/InferenceX, benchmarks/, October 2025 to April
/// 2026).
double collecting_steps(const SiliconRow& row, const SiliconLayout& layout,
                        const Hardware& hardware) {
  if (row.equal_lengths) return 0;  // not one of its runs
  const auto is = [&](const char* model) { return row.model.find(model) != row.model.npos; };
  if (row.engine == "sglang" && hardware.find("peak_fp4") != nullptr) {
    // --scheduler-recv-interval: on average, half of it is left.
    if (is("GLM-5")) return row.precision == "fp8" ? 0 : 10 / 2;
    return row.concurrency < 16 ? 10 / 2 : 30 / 2;
  }
  if (row.engine != "trtllm") return 0;
  if (is("DeepSeek") && row.data > 1 && layout.data > 1) return 60;  // attention_dp timeout_iters
  const bool is_short = row.prompt == 1024 && row.output == 1024;
  return is("Llama-3.1-70B") && is_short && layout.tensor < 8 ? 20 : 0;  // batch_wait_timeout_iters
}

/// Of the prediction layer per step, as the engines' recipes set them.
int guesses_of(const SiliconRow& row, const SiliconLayout& layout) {
  if (!row.speculative) return 0;
  return row.engine == "sglang" ? 2 : layout.data > 1 ? 1 : 3;
}

bool is_known(const std::string& precision) {
  constexpr std::string_view kKnown[] = {"",     "fp8",      "fp4",  "int4",
                                         "bf16", "bfloat16", "fp16", "float16"};
  return std::find(std::begin(kKnown), std::end(kKnown), precision) != std::end(kKnown);
}

int bits_of(const std::string& precision) {
  return precision == "fp8" ? 8 : precision == "fp4" ? 4 : 16;
}

}  // namespace

std::vector<SiliconRow> read_silicon(std::string_view csv, const std::string& what) {
  std::map<std::string, size_t> columns;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (csv.starts_with(kByteOrderMark)) csv.remove_prefix(kByteOrderMark.size());
  const std::vector<std::string> header = next_line(csv, what + ": header");
  for (size_t i = 0; i < header.size(); ++i) columns[header[i]] = i;
  for (const char* column : {"id", "model_path", "system", "backend", "mode", "isl", "osl"}) {
    if (columns.contains(column)) continue;
    throw Error(ErrorCode::kInvalidInput, "{}: header: column {} is missing", what, column);
  }
  std::vector<SiliconRow> rows;
  for (size_t number = 2; !csv.empty(); ++number) {
    const std::string where = fmt::format("{}: line {}", what, number);
    std::vector<std::string> cells = next_line(csv, where);
    if (cells.size() == 1 && cells[0].empty()) continue;
    if (rows.size() == kMaxRows) {
      throw Error(ErrorCode::kResource, "{}: expected at most {} rows", what, kMaxRows);
    }
    rows.push_back(read_row(Line(columns, std::move(cells), where)));
  }
  unmark_copies(rows);
  return rows;
}

SiliconLayout layout_of(const SiliconRow& row, int devices_per_node, bool has_experts) {
  const int spread = has_experts ? row.expert_tensor * row.expert : 1;
  int devices = std::max(row.tensor, spread), data = row.data;
  if (!row.disaggregated) {
    // Some rows give tp x ep as tp, dp x ep as ep, or both degrees of a group that is shared.
    const bool doubled = row.expert_tensor == row.expert && row.expert > 1;
    const bool squared = row.data == row.tensor && row.data > 1 && spread == row.data * row.tensor;
    if (doubled) devices = row.expert;
    if (squared) devices = row.tensor;
    if (const int named = int(number_after(row.id, "_tp")); named > 0) {
      devices = named;
      if (!doubled && !squared && spread > named && spread <= devices_per_node) {
        devices = spread;  // each mixer on fewer devices than the experts are
        data = std::max(1, spread / named);
      }
    }
  }
  devices = std::clamp(devices, 1, row.disaggregated ? kMaxDevices : devices_per_node);
  data = std::min(data, devices);
  if (row.disaggregated && row.tensor == 1) data = devices;
  SiliconLayout layout;
  layout.tensor = std::max(1, devices / data);
  layout.data = std::max(1, devices / layout.tensor);
  layout.expert = has_experts ? std::min(row.expert, layout.tensor * layout.data) : 1;
  if (row.disaggregated) {
    layout.instances = row.workers > 0 ? row.workers
                       : devices <= 8
                           ? int(std::max(1.0, std::min(kUnknownWorkers, row.concurrency / 2)))
                           : 1;
  }
  return layout;
}

const ModelShape* SiliconCosts::model_of(const std::string& name) {
  const auto [at, is_new] = models_.try_emplace(name);
  if (is_new) {
    if (const std::optional<Config> config = config_of(name)) at->second = describe_model(*config);
  }
  return at->second ? &*at->second : nullptr;
}

const std::shared_ptr<const Hardware>& SiliconCosts::hardware_of(const std::string& name) {
  const auto [at, is_new] = hardware_.try_emplace(name);
  if (is_new) {
    if (std::optional<Hardware> hardware = find_hardware(name)) {
      at->second = std::make_shared<const Hardware>(*std::move(hardware));
    }
  }
  return at->second;
}

std::optional<SiliconCost> SiliconCosts::of(const SiliconRow& row, std::string& why) {
  const ModelShape* const model = model_of(row.model);
  const std::shared_ptr<const Hardware>& hardware = hardware_of(row.system);
  why = model == nullptr                    ? "model is not in the catalogue"
        : hardware == nullptr               ? "hardware is not known"
        : !is_known(row.precision)          ? "precision is not known"
        : row.concurrency <= 0              ? "requests in flight are not recorded"
        : row.output <= 1 || row.prompt < 1 ? "no lengths"
                                            : "";
  if (!why.empty()) return std::nullopt;
  const WeightFormat format = format_of(row, *model);
  const SiliconLayout layout =
      holding(layout_of(row, hardware->devices_per_node, has_experts(*model)), *hardware,
              weights_bytes(*model, format), has_experts(*model));
  std::shared_ptr<CostModel>& cost =
      costs_[fmt::format("{}|{}|{}|{}|{}|{}|{}", row.model, row.system, row.precision, row.engine,
                         layout.tensor, layout.data, layout.expert)];
  if (cost == nullptr) {
    const std::vector<double> even(model->blocks.size() + 1, 1);
    Placement placement{.plan = split_by_cost(even, 1),
                        .groups = {{.hardware = hardware,
                                    .tensor = layout.tensor,
                                    .data = layout.data,
                                    .expert = layout.expert}},
                        .weights = format,
                        .compute_bits = bits_of(row.precision),
                        .engine = row.engine};
    cost = std::make_shared<CostModel>(*model, std::move(placement));
  }
  return SiliconCost(row, cost, layout);
}

SiliconCost::SiliconCost(const SiliconRow& row, std::shared_ptr<CostModel> cost,
                         const SiliconLayout& layout)
    : cost_(std::move(cost)),
      layout_(layout),
      disaggregated_(row.disaggregated),
      equal_lengths_(row.equal_lengths),
      guesses_(guesses_of(row, layout)),
      collecting_steps_(collecting_steps(row, layout, *cost_->placement().groups[0].hardware)) {
  const double mean = row.equal_lengths ? 1 : kMeanLength;
  prompt_ = mean * row.prompt;
  output_ = mean * row.output;
  per_instance_ = running_ = std::max(1.0, row.concurrency / layout.instances);
  const double fit = sequences_that_fit(prompt_ + output_ / 2);
  if (fit > 1) running_ = std::min(per_instance_, fit);
  load_ = per_instance_ / sequences_that_fit(prompt_ + output_);
}

double SiliconCost::sequences_that_fit(double positions) const {
  const StageMemory one = cost_->memory(0, 1, positions);
  double bytes = one.cache_bytes;
  if (cost_->placement().compute_bits < 16) {
    bytes *= cache_bytes(cost_->model(), positions, CacheFormat::k8Bit) /
             cache_bytes(cost_->model(), positions, CacheFormat::k16Bit);
  }
  return std::max(0.0, one.usable_bytes - one.weights_bytes) / bytes;
}

double SiliconCost::first_token_us(const Calibration& calibration, double step_us) const {
  const std::string& engine = cost_->placement().engine;
  // Mixers with sequences of their own compute a prompt each at a time.
  BatchShape prompts = prefill_shape(prompt_, 0);
  for (int i = 1; i < layout_.data; ++i) prompts += prefill_shape(prompt_, 0);
  const double own_us = cost_->latency_us(prompts);
  // Who asks with others waits for half of them: all in the first round; later, as lengths differ,
  // nobody. Requests of equal lengths end together and stay in step, in bunches.
  const double users = running_ / layout_.data;
  const double bunch = std::min(users, calibration.by_engine(kFirstTokenBunch, engine));
  double others = kFirstRound * std::max(0.0, users - 1);
  if (equal_lengths_) others += std::max(0.0, bunch - 1);
  const double steps = calibration.by_engine(kFirstTokenSteps, engine) + collecting_steps_;
  return calibration.values[kFirstToken] + steps * step_us + own_us * (1 + kMeanWait * others);
}

SiliconPrediction SiliconCost::predict(const Calibration& calibration) {
  cost_->calibrate(calibration);
  const auto& constant = calibration.values;
  const double context = prompt_ + output_ / 2;
  const BatchShape decode = decode_shape(running_, context, 1 + guesses_);
  const double plain_us = cost_->latency_us(decode);
  const double draft = guesses_ * 2 / double(cost_->model().blocks.size());  // a layer each
  const double step_us = plain_us * (1 + draft);
  double accepted = 1;
  for (int i = 1; i <= guesses_; ++i) accepted += std::pow(constant[kAccepted], i);

  const BatchShape prompt = prefill_shape(prompt_, 0);
  const double alone_us = cost_->latency_us(prompt), others = running_ - 1;
  double per_token_us = step_us / accepted;
  if (!disaggregated_) {
    // A prompt shares its step with the decoding rows: what it adds is what counts. Who decodes
    // meets the others' prompts in the share of the time that it does not wait for its own:
    // answer = decoding + prompts x answer / (answer + waiting).
    const double prompt_us = cost_->latency_us(decode + prompt) - plain_us;
    const double decoding = output_ * per_token_us, prompts = others * prompt_us;
    const double waiting = alone_us + kMeanWait * prompts;
    const double half = (decoding + prompts - waiting) / 2;
    per_token_us = (half + std::sqrt(half * half + decoding * waiting)) / output_;
  }

  SiliconPrediction prediction{.tpot_ms = per_token_us / 1e3, .load = load_};
  if (load_ > kLastTtftLoad) return prediction;
  if (disaggregated_) return prediction;  // how many devices compute prompts is not recorded
  prediction.ttft_ms = first_token_us(calibration, per_token_us * accepted) / 1e3;
  return prediction;
}

}  // namespace sluice
