// One .safetensors file: a JSON header and the tensors it describes, mapped.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weights/tensor.h"

namespace sluice {

class MappedFile;

class SafetensorsFile {
 public:
  /// Throws Error: kInvalidInput when the header breaks the format (holes, overlaps, duplicate
  /// names, sizes that do not match), kUnsupported for an element type without a DType.
  explicit SafetensorsFile(const std::filesystem::path& path);
  /// A file in memory that outlives this object; `name` is used in messages.
  SafetensorsFile(std::span<const std::byte> bytes, std::filesystem::path name);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::vector<TensorView>& tensors() const { return tensors_; }  // in header order
  const TensorView* tensor(std::string_view name) const;               // nullptr if absent
  /// "__metadata__".
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  void parse(std::span<const std::byte> bytes);

  std::filesystem::path path_;
  std::unique_ptr<MappedFile> file_;
  std::vector<TensorView> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace sluice
