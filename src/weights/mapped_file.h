// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace sluice {

class MappedFile {
 public:
  /// Throws kNotFound without the file, kIo when it is not a regular file or cannot be mapped.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// The whole file; empty for an empty file. Valid as long as this object.
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

/// Asks the system to read these bytes of a mapping ahead.
void prefetch(std::span<const std::byte> bytes);
/// Gives back the pages that lie wholly inside these bytes of a mapping; a later read loads them
/// again from the file.
void release(std::span<const std::byte> bytes);

}  // namespace sluice
