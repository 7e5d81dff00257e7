#include "plan/hardware.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "plan/embedded.h"

namespace sluice {
namespace {

struct NumberKind {
  const char* name;
  const char* unit;
  double most;  // larger ones are a slip of units
};

constexpr NumberKind kNumbers[] = {
    {"memory_bytes", "B", 1e15},
    {"memory_bandwidth", "B/s", 1e18},
    {"peak_bf16", "FLOP/s", 1e19},
    {"peak_fp8", "FLOP/s", 1e19},
    {"peak_fp4", "FLOP/s", 1e19},
    {"link_bandwidth", "B/s", 1e16},
    {"hop_latency", "s", 1},
    {"layer_latency", "s", 1},
    {"token_latency", "s", 1},
    {"usable_memory", "fraction", 1},
    {"power", "W", 1e7},
    {"usd_per_hour", "USD/h", 1e6},
    {"usd_capital", "USD", 1e9},
    {"pue", "ratio", 3},
    {"devices_per_rack", "devices", 1e4},
};
constexpr const char* kKinds[] = {"official", "measured", "estimated", "derived", "assumed"};
constexpr const char* kFamilies[] = {"gpu", "tpu", "wafer", "sram", "cpu"};

template <size_t n>
void require_one_of(const Config& config, const char* key, const char* const (&names)[n]) {
  const std::string text = config.text(key);
  if (std::find(std::begin(names), std::end(names), text) == std::end(names)) {
    throw Error(ErrorCode::kInvalidInput, "{}: {}: expected one of {}, got {}", config.what(), key,
                fmt::join(names, ", "), text);
  }
}

const NumberKind& number_kind(const Config& numbers, const std::string& name) {
  for (const NumberKind& kind : kNumbers) {
    if (name == kind.name) return kind;
  }
  throw Error(ErrorCode::kInvalidInput, "{}: {} is not known", numbers.what(), name);
}

Quantity read_quantity(const Config& config, const NumberKind& kind) {
  require_one_of(config, "kind", kKinds);
  Quantity q{.value = config.number("value"),
             .low = config.number("low", config.number("value")),
             .high = config.number("high", config.number("value")),
             .unit = config.text("unit"),
             .kind = config.text("kind"),
             .source = config.text("source")};
  if (q.unit != kind.unit) {
    throw Error(ErrorCode::kInvalidInput, "{}: unit: expected {}, got {}", config.what(), kind.unit,
                q.unit);
  }
  if (q.source.empty()) {
    throw Error(ErrorCode::kInvalidInput, "{}: source: expected a text", config.what());
  }
  const bool in_order = q.low > 0 && q.low <= q.value && q.value <= q.high && q.high <= kind.most;
  if (!in_order) {
    throw Error(ErrorCode::kInvalidInput,
                "{}: expected 0 < low <= value <= high <= {}, got {}, {}, {}", config.what(),
                kind.most, q.low, q.value, q.high);
  }
  return q;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
  return out;
}

const std::vector<Hardware>& profiles() {
  static const std::vector<Hardware> kProfiles = [] {
    std::vector<Hardware> all;
    for (const EmbeddedFile& file : hardware_files()) {
      all.push_back(hardware_from_json(Config(parse_json(file.text, file.file), file.file)));
    }
    std::sort(all.begin(), all.end(),
              [](const Hardware& a, const Hardware& b) { return lower(a.name) < lower(b.name); });
    return all;
  }();
  return kProfiles;
}

}  // namespace

const Quantity* Hardware::find(std::string_view number) const {
  const auto found = numbers.find(number);
  return found == numbers.end() ? nullptr : &found->second;
}

Hardware hardware_from_json(const Config& config) {
  require_one_of(config, "family", kFamilies);
  Hardware hardware{.name = config.text("name"),
                    .aliases = {},
                    .family = config.text("family"),
                    .devices_per_node = int(config.integer_in("devices_per_node", 1, 1 << 20)),
                    .numbers = {}};
  if (hardware.name.empty()) {
    throw Error(ErrorCode::kInvalidInput, "{}: name: expected a text, got an empty one",
                config.what());
  }
  if (config.has("aliases")) hardware.aliases = config.texts("aliases");
  const Config numbers = config.object("numbers");
  for (const auto& [name, json] : numbers.json().items()) {
    const NumberKind& kind = number_kind(numbers, name);
    const Config quantity(json, config.what() + ": " + name);
    hardware.numbers[name] = read_quantity(quantity, kind);
  }
  return hardware;
}

std::vector<std::string> hardware_names() {
  std::vector<std::string> names;
  for (const Hardware& hardware : profiles()) names.push_back(hardware.name);
  return names;
}

std::optional<Hardware> find_hardware(std::string_view name) {
  const std::string wanted = lower(name);
  for (const Hardware& hardware : profiles()) {
    if (lower(hardware.name) == wanted) return hardware;
    for (const std::string& alias : hardware.aliases) {
      if (lower(alias) == wanted) return hardware;
    }
  }
  return std::nullopt;
}

DeviceCount devices_for(const Hardware& hardware, double bytes) {
  const Quantity* const memory = hardware.find("memory_bytes");
  const Quantity* const usable = hardware.find("usable_memory");
  if (memory == nullptr || usable == nullptr) {
    throw Error(ErrorCode::kUnsupported, "{}: expected memory to load a model into, found none",
                hardware.name);
  }
  return {.value = std::ceil(bytes / (memory->value * usable->value)),
          .best = std::ceil(bytes / (memory->high * usable->high)),
          .worst = std::ceil(bytes / (memory->low * usable->low))};
}

}  // namespace sluice
