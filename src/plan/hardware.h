// Devices that a plan can be priced on: the profiles of hardware/, each number with its source.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sluice {

/// A number that somebody stands for. `kind`: "official" (the maker's statement), "measured" (by a
/// third party), "estimated" (by a third party), "derived" (arithmetic on others), "assumed".
struct Quantity {
  double value = 0;
  double low = 0, high = 0;  // low <= value <= high; equal where no range is known
  std::string unit, kind, source;
};

struct Hardware {
  std::string name;
  std::vector<std::string> aliases;
  std::string family;        // "gpu", "tpu", "wafer", "sram", "cpu"
  int devices_per_node = 1;  // that share the fast links
  std::map<std::string, Quantity, std::less<>> numbers;

  /// nullptr if the profile does not have it.
  const Quantity* find(std::string_view number) const;
};

/// The profile in a JSON object; units, kinds and ranges are checked. Throws kInvalidInput naming
/// the field.
Hardware hardware_from_json(const Config& config);

/// Names in alphabetical order, without aliases.
std::vector<std::string> hardware_names();
/// By name or alias, whatever the case; empty if there is none.
std::optional<Hardware> find_hardware(std::string_view name);

/// Devices that hold `bytes` in the usable part of their memories. `best` and `worst` come from the
/// ends of the ranges.
struct DeviceCount {
  double value = 0, best = 0, worst = 0;
};
/// Throws kUnsupported for a profile without memory to load a model into.
DeviceCount devices_for(const Hardware& hardware, double bytes);

}  // namespace sluice
