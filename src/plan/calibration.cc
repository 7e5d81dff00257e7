#include "plan/calibration.h"

#include "base/error.h"
#include "plan/embedded.h"

namespace sluice {

const std::array<ConstantInfo, kConstants> kConstantInfo = {{
    {"memory", 0.8, 0.2, 1},
    {"expert_memory", 0.8, 0.2, 1},
    {"cache_memory", 0.8, 0.2, 1},
    {"compute", 0.6, 0.1, 1},
    {"expert_compute", 0.4, 0.03, 1},
    {"link", 0.4, 0.05, 1},
    {"block_us_trtllm", 20, 1, 200},
    {"block_us_sglang", 22, 1, 200},
    {"block_us_vllm", 25, 1, 200},
    {"expert_block_us", 30, 1, 200},
    {"expert_block_fp4", 0.5, 0.1, 2},
    {"latent_block_us", 30, 1, 200},
    {"indexer_block_us", 30, 1, 200},
    {"recurrent_block_us", 20, 1, 200},
    {"collective_us", 5, 0.5, 50},
    {"step_us", 300, 10, 5000},
    {"sequence_us", 10, 0.1, 300},
    {"host_block_us_trtllm", 150, 10, 2000},
    {"host_block_us_sglang", 150, 10, 2000},
    {"host_block_us_vllm", 150, 10, 2000},
    {"host_expert_block_us", 200, 10, 5000},
    {"host_latent_block_us", 200, 10, 5000},
    {"accepted_guess", 0.65, 0.2, 1},
    {"first_token_us", 20000, 100, 500000},
    {"first_token_steps_trtllm", 3, 0.1, 30},
    {"first_token_steps_sglang", 3, 0.1, 30},
    {"first_token_steps_vllm", 3, 0.1, 30},
    {"first_token_bunch_trtllm", 6, 1, 100},
    {"first_token_bunch_sglang", 30, 1, 100},
    {"first_token_bunch_vllm", 3, 1, 100},
}};

double Calibration::by_engine(Constant first, const std::string& engine) const {
  constexpr const char* kEngines[] = {"trtllm", "sglang", "vllm"};
  double sum = 0;
  for (size_t i = 0; i < std::size(kEngines); ++i) {
    if (engine == kEngines[i]) return values[first + i];
    sum += values[first + i];
  }
  return sum / std::size(kEngines);
}

Calibration uncalibrated() {
  Calibration calibration;
  for (size_t i = 0; i < kConstants; ++i) calibration.values[i] = kConstantInfo[i].start;
  return calibration;
}

Calibration calibration_from_json(const Config& config) {
  Calibration calibration;
  const Config constants = config.object("constants");
  for (size_t i = 0; i < kConstants; ++i) {
    const ConstantInfo& info = kConstantInfo[i];
    calibration.values[i] = constants.number(info.name);
    if (!(calibration.values[i] >= info.low && calibration.values[i] <= info.high)) {
      throw Error(ErrorCode::kInvalidInput, "{}: {}: expected {} to {}, got {}", constants.what(),
                  info.name, info.low, info.high, calibration.values[i]);
    }
  }
  if (config.has("rows")) calibration.rows = config.texts("rows");
  return calibration;
}

OrderedJson calibration_to_json(const Calibration& calibration, const std::string& source) {
  OrderedJson constants;
  for (size_t i = 0; i < kConstants; ++i) {
    constants[kConstantInfo[i].name] = calibration.values[i];
  }
  return {{"source", source}, {"constants", constants}, {"rows", calibration.rows}};
}

const EmbeddedFile& calibration_file(const char* name) {
  const std::string path = fmt::format("calibration/{}.json", name);
  for (const EmbeddedFile& file : calibration_files()) {
    if (path == file.file) return file;
  }
  throw Error(ErrorCode::kNotFound, "{}: not compiled in", path);
}

const Calibration& shipped_calibration() {
  static const Calibration kShipped = [] {
    const EmbeddedFile& file = calibration_file("gpu");
    return calibration_from_json(Config(parse_json(file.text, file.file), file.file));
  }();
  return kShipped;
}

}  // namespace sluice
