// The data files of catalog/, hardware/, calibration/ and claims/, compiled in.
#pragma once

#include "base/embedded.h"

namespace sluice {

std::span<const EmbeddedFile> catalog_files();
std::span<const EmbeddedFile> hardware_files();
std::span<const EmbeddedFile> calibration_files();
std::span<const EmbeddedFile> claims_files();

/// calibration/NAME.json.
const EmbeddedFile& calibration_file(const char* name);

}  // namespace sluice
