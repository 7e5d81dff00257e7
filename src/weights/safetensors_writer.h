// Writes a .safetensors file: named f32 and i32 tensors with string metadata.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weights/tensor.h"

namespace sluice {

class SafetensorsWriter {
 public:
  /// The values are not copied: they must live until write(). Their number is the product of
  /// `shape`.
  void add(std::string name, std::vector<int64_t> shape, std::span<const float> values);
  void add(std::string name, std::vector<int64_t> shape, std::span<const int32_t> values);
  /// An entry of "__metadata__".
  void add_metadata(std::string key, std::string value);

  /// Replaces `path`. Throws kIo, leaving no partial file under that name.
  void write(const std::filesystem::path& path) const;

 private:
  void add(std::string name, std::vector<int64_t> shape, DType dtype,
           std::span<const std::byte> data);
  std::string header() const;

  std::vector<TensorView> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace sluice
