// Files that are compiled in (cmake/embed.cmake). `embed(some/folder)` defines
// `std::span<const EmbeddedFile> folder_files()`.
#pragma once

#include <span>

namespace sluice {

struct EmbeddedFile {
  const char* file;  // "some/folder/x.json"
  const char* text;
};

}  // namespace sluice
