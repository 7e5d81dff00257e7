// The data files of catalog/ and hardware/, compiled in.
#pragma once

#include <span>

namespace sluice {

struct EmbeddedFile {
  const char* file;  // "catalog/x.json"
  const char* text;
};

std::span<const EmbeddedFile> catalog_files();
std::span<const EmbeddedFile> hardware_files();

}  // namespace sluice
