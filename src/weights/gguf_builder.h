// Builds GGUF files in memory, right or wrong, for tests.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/gguf.h"

namespace sluice {

class GgufBuilder {
 public:
  template <typename T>
  GgufBuilder& put(T value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    return *this;
  }
  GgufBuilder& put_string(std::string_view text) {
    put(uint64_t(text.size()));
    for (const char c : text) bytes_.push_back(std::byte(c));
    return *this;
  }
  GgufBuilder& header(uint64_t n_tensors, uint64_t n_values, uint32_t version = 3) {
    return put(uint32_t(0x46554747)).put(version).put(n_tensors).put(n_values);
  }
  GgufBuilder& key(std::string_view name, GgufType type) {
    return put_string(name).put(uint32_t(type));
  }
  GgufBuilder& text(std::string_view name, std::string_view value) {
    return key(name, GgufType::kString).put_string(value);
  }
  GgufBuilder& array(std::string_view name, GgufType type, uint64_t count) {
    return key(name, GgufType::kArray).put(uint32_t(type)).put(count);
  }
  /// `dimensions` in file order: the contiguous one first.
  GgufBuilder& tensor(std::string_view name, std::vector<uint64_t> dimensions, DType type,
                      uint64_t offset) {
    put_string(name).put(uint32_t(dimensions.size()));
    for (const uint64_t size : dimensions) put(size);
    return put(uint32_t(type)).put(offset);
  }
  /// Pads to `alignment` and appends `n` bytes of data: 0, 1, 2, ...
  GgufBuilder& data(size_t n, size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    for (size_t i = 0; i < n; ++i) bytes_.push_back(std::byte(i));
    return *this;
  }

  std::span<const std::byte> bytes() const { return bytes_; }

  void write(const std::filesystem::path& path) const {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes_.data()), std::streamsize(bytes_.size()));
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace sluice
