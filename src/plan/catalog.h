// The published models of catalog/, which are compiled into the library.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sluice {

/// Names in alphabetical order, without aliases.
std::vector<std::string> catalog_names();

/// The name in the catalogue of what a name or alias stands for; empty if there is none.
std::optional<std::string> catalog_name(std::string_view name);

/// The config of a published model by name or alias, whatever the case; a leading "owner/" may be
/// left out. Its what() is the source. Empty if there is none.
std::optional<Config> catalog_config(std::string_view name);

/// {"total", "active", "source"} as the maker states them; empty if the catalogue has none.
std::optional<Config> published_parameters(std::string_view name);

}  // namespace sluice
