// The data files of catalog/ and hardware/, compiled in.
#pragma once

#include "base/embedded.h"

namespace sluice {

std::span<const EmbeddedFile> catalog_files();
std::span<const EmbeddedFile> hardware_files();

}  // namespace sluice
