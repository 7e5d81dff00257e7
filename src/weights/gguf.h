// GGUF versions 2 and 3 (specification: ggml's docs/gguf.md), single files and split sets, by mmap.
#pragma once

#include <cstdint>
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

/// The type numbers of metadata values in the file.
enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

/// A metadata value: a view of its bytes in the mapping, checked when the file was opened. Arrays
/// are not unpacked, so that a vocabulary costs nothing until somebody asks for it.
struct GgufValue {
  GgufType type = GgufType::kU8;    // of each item, for an array
  bool is_array = false;            // an array of arrays has the type kArray and is not readable
  uint64_t count = 1;               // items
  const std::byte* data = nullptr;  // the first item; of a string: its length, then its bytes
};

/// What a value holds, in at most about `limit` characters: "12", "\"gpt2\"", "[1, 1, 1, ...]
/// (49152)".
std::string gguf_value_text(const GgufValue& value, size_t limit = 60);

class GgufFile {
 public:
  /// Maps `path`; for "x-00001-of-00003.gguf" also the other parts. Throws Error.
  explicit GgufFile(const std::filesystem::path& path);
  /// One file in memory that outlives this object; `name` is used in messages.
  GgufFile(std::span<const std::byte> bytes, std::filesystem::path name);
  ~GgufFile();
  GgufFile(const GgufFile&) = delete;
  GgufFile& operator=(const GgufFile&) = delete;

  const GgufValue* find(std::string_view key) const;  // nullptr if absent
  /// Typed lookups; the versions without fallback throw kInvalidInput when missing; all throw when
  /// the type does not fit. An f32 number is returned as the shortest decimal that rounds to it:
  /// 0.22f as 0.22, which is what the config.json it was made from says.
  int64_t integer(std::string_view key) const;
  int64_t integer(std::string_view key, int64_t fallback) const;
  double number(std::string_view key) const;
  double number(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string_view text(std::string_view key) const;
  std::string_view text(std::string_view key, std::string_view fallback) const;
  /// Lists; empty if absent. `integers` also takes booleans, and a single value as a list of one.
  std::vector<std::string_view> texts(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key) const;
  std::vector<double> numbers(std::string_view key) const;

  const std::vector<std::pair<std::string_view, GgufValue>>& metadata() const { return metadata_; }
  const std::vector<TensorView>& tensors() const { return tensors_; }
  const TensorView* tensor(std::string_view name) const;  // nullptr if absent
  const std::filesystem::path& path() const { return path_; }

 private:
  void open_parts();
  void index();
  [[noreturn]] void fail(std::string_view key, std::string_view expected,
                         const GgufValue* got) const;
  const GgufValue& require(std::string_view key, std::string_view expected) const;

  std::filesystem::path path_;
  std::vector<std::unique_ptr<MappedFile>> parts_;
  std::vector<std::pair<std::string_view, GgufValue>> metadata_;
  std::unordered_map<std::string_view, size_t> metadata_index_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string_view, size_t> tensor_index_;
};

}  // namespace sluice
