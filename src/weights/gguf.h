// GGUF version 3 (specification: ggml's docs/gguf.md), single files and split sets, read by mmap.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "weights/tensor.h"

namespace sluice {

class MappedFile;

/// A metadata value: numbers are widened, strings are views into the mapping.
struct GgufValue {
  using Array = std::vector<GgufValue>;
  std::variant<int64_t, uint64_t, double, bool, std::string_view, Array> value;
};

class GgufFile {
 public:
  /// Maps `path`; for "x-00001-of-00003.gguf" also the other parts. Throws Error.
  explicit GgufFile(const std::filesystem::path& path);
  ~GgufFile();
  GgufFile(const GgufFile&) = delete;

  const GgufValue* find(std::string_view key) const;  // nullptr if absent
  /// Typed lookups; the versions without fallback throw kInvalidInput when missing; all throw when
  /// the type does not fit.
  int64_t integer(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t fallback) const;
  double number(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string_view text(std::string_view key) const;
  std::string_view text(std::string_view key, std::string_view fallback) const;
  std::vector<std::string_view> texts(std::string_view key) const;   // empty if absent
  std::vector<int64_t> integers(std::string_view key) const;         // empty if absent
  std::vector<double> numbers(std::string_view key) const;           // empty if absent

  const std::vector<std::pair<std::string_view, GgufValue>>& metadata() const { return metadata_; }
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const TensorView* tensor(std::string_view name) const;  // nullptr if absent
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::vector<std::unique_ptr<MappedFile>> parts_;
  std::vector<std::pair<std::string_view, GgufValue>> metadata_;
  std::unordered_map<std::string_view, size_t> metadata_index_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string_view, size_t> tensor_index_;
};

}  // namespace sluice
