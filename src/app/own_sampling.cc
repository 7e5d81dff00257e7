#include "app/own_sampling.h"

#include <limits>

#include "app/options.h"
#include "base/error.h"
#include "weights/gguf.h"

namespace sluice {
namespace {

constexpr double kMaxTemperature = 100;

/// `value` unless it is outside [0, most].
double checked(double value, double most, const std::string& file, const char* field) {
  if (value >= 0 && value <= most) return value;
  throw Error(ErrorCode::kInvalidInput, "{}: {}: expected a number from 0 to {}, got {}", file,
              field, most, value);
}

/// Some files say -1 for all.
int checked_top_k(int64_t value, const std::string& file, const char* field) {
  if (value <= 0) return 0;
  return int(checked(double(value), std::numeric_limits<int>::max(), file, field));
}

void read_config(const Config& config, SamplingParams& s) {
  const auto number = [&](const char* key, double most, float usual) {
    return config.has(key) ? float(checked(config.number(key), most, config.what(), key)) : usual;
  };
  s.temperature = number("temperature", kMaxTemperature, s.temperature);
  s.top_p = number("top_p", 1, s.top_p);
  s.top_k = checked_top_k(config.integer("top_k", s.top_k), config.what(), "top_k");
  if (!config.boolean("do_sample", true)) s.temperature = 0;
}

void read_gguf(const GgufFile& gguf, SamplingParams& s) {
  // As https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct recommends; the file says
  // nothing.
  if (gguf.text("general.name", "") == "Smollm2 135M 8k Lc100K Mix1 Ep2") {
    s.temperature = 0.2f;
    s.top_p = 0.9f;
  }
  const std::string file = gguf.path().string();
  const auto number = [&](const char* key, double most, float usual) {
    return gguf.find(key) ? float(checked(gguf.number(key), most, file, key)) : usual;
  };
  s.temperature = number("general.sampling.temp", kMaxTemperature, s.temperature);
  s.top_p = number("general.sampling.top_p", 1, s.top_p);
  constexpr const char* kTopK = "general.sampling.top_k";
  s.top_k = checked_top_k(gguf.integer(kTopK, s.top_k), file, kTopK);
}

}  // namespace

SamplingParams own_sampling(const Checkpoint& checkpoint, SamplingParams usual) {
  const std::filesystem::path file = checkpoint.path() / "generation_config.json";
  if (checkpoint.gguf() != nullptr) {
    read_gguf(*checkpoint.gguf(), usual);
  } else if (std::filesystem::exists(file)) {
    read_config(Config(parse_json(read_text(file), file.string()), file.string()), usual);
  }
  return usual;
}

}  // namespace sluice
