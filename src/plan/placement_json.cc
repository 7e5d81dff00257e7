#include "base/error.h"
#include "plan/search.h"

namespace sluice {
namespace {

Json format_to_json(const WeightFormat& format) {
  return {{"name", format.name},
          {"matrix", format.matrix},
          {"expert", format.expert},
          {"embedding", format.embedding},
          {"other", format.other}};
}

double bytes_per_parameter(const Config& config, const char* key) {
  const double bytes = config.number(key);
  if (!(bytes > 0 && bytes <= 8)) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected bytes per parameter in (0, 8], got {}",
                config.what(), key, bytes);
  }
  return bytes;
}

WeightFormat format_from_json(const Config& config) {
  return {.name = config.text("name"),
          .matrix = bytes_per_parameter(config, "matrix"),
          .expert = bytes_per_parameter(config, "expert"),
          .embedding = bytes_per_parameter(config, "embedding"),
          .other = bytes_per_parameter(config, "other")};
}

DeviceGroup group_from_json(const Config& stage) {
  const std::string name = stage.text("hardware");
  const std::optional<Hardware> hardware = find_hardware(name);
  if (!hardware) {
    throw Error(ErrorCode::kNotFound, "{}: hardware: {} is not known; known are {}", stage.what(),
                name, fmt::join(hardware_names(), ", "));
  }
  const auto degree = [&](const char* key) {
    return stage.has(key) ? int(stage.integer_in(key, 1, 1 << 20)) : 1;
  };
  return {.hardware = std::make_shared<const Hardware>(*hardware),
          .tensor = degree("tensor"),
          .data = degree("data"),
          .expert = degree("expert")};
}

}  // namespace

OrderedJson placement_to_json(const Placement& placement, const std::string& model) {
  Json plan = plan_to_json(placement.plan);
  for (size_t i = 0; i < placement.groups.size(); ++i) {
    const DeviceGroup& group = placement.groups[i];
    plan["stages"][i].update({{"hardware", group.hardware->name},
                              {"tensor", group.tensor},
                              {"data", group.data},
                              {"expert", group.expert}});
  }
  return {{"model", model},
          {"n_blocks", plan["n_blocks"]},
          {"stages", plan["stages"]},
          {"weights", format_to_json(placement.weights)},
          {"cache", placement.cache == CacheFormat::k8Bit ? "fp8" : "bf16"},
          {"compute_bits", placement.compute_bits},
          {"engine", placement.engine}};
}

Placement placement_from_json(const Json& json, const std::string& what) {
  Placement placement;
  placement.plan = plan_from_json(json, what);
  const Config config(json, what);
  size_t number = 0;
  for (const Json& stage : json.at("stages")) {
    placement.groups.push_back(
        group_from_json(Config(stage, fmt::format("{}: stage {}", what, number++))));
  }
  if (config.has("weights")) placement.weights = format_from_json(config.object("weights"));
  const std::string cache = config.text("cache", "bf16");
  if (cache != "bf16" && cache != "fp8") {
    throw Error(ErrorCode::kInvalidInput, "{}: cache: expected bf16 or fp8, got {}", what, cache);
  }
  placement.cache = cache == "fp8" ? CacheFormat::k8Bit : CacheFormat::k16Bit;
  if (config.has("compute_bits")) {
    placement.compute_bits = int(config.integer_in("compute_bits", 4, 16));
    if (placement.compute_bits != 4 && placement.compute_bits != 8 &&
        placement.compute_bits != 16) {
      throw Error(ErrorCode::kInvalidInput, "{}: compute_bits: expected 4, 8 or 16, got {}", what,
                  placement.compute_bits);
    }
  }
  placement.engine = config.text("engine", "");
  return placement;
}

}  // namespace sluice
