#include "weights/packed_checkpoint.h"

#include <charconv>
#include <cstring>
#include <unordered_map>

#include "base/error.h"
#include "weights/mapped_file.h"
#include "weights/safetensors.h"

namespace sluice {
namespace {

struct MatrixNote {
  DType dtype = DType::kF32;
  int64_t rows = 0, cols = 0;
};

Json read_json(const std::filesystem::path& path) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

/// "Q4_1 576 192"; false if `text` is something else.
bool parse_note(std::string_view text, MatrixNote& note) {
  const size_t space = text.find(' ');
  if (space == text.npos) return false;
  bool known = false;
  for (const DTypeInfo& type : all_dtypes()) {
    if (text.substr(0, space) != type.name) continue;
    note.dtype = type.dtype;
    known = true;
  }
  const char* const end = text.data() + text.size();
  const auto rows = std::from_chars(text.data() + space + 1, end, note.rows);
  if (!known || rows.ec != std::errc() || rows.ptr == end || *rows.ptr != ' ') return false;
  const auto cols = std::from_chars(rows.ptr + 1, end, note.cols);
  return cols.ec == std::errc() && cols.ptr == end && note.rows > 0 && note.cols > 0;
}

class PackedCheckpoint final : public Checkpoint {
 public:
  explicit PackedCheckpoint(const std::filesystem::path& folder)
      : path_(folder),
        config_(read_json(folder / "config.json"), (folder / "config.json").string()),
        file_(folder / kPackedFileName) {
    std::string layout = "none";
    for (const auto& [key, value] : file_.metadata()) {
      MatrixNote note;
      if (key == kPackedLayoutKey) layout = value;
      if (parse_note(value, note)) notes_[key] = note;
    }
    if (layout != kPackedLayout) {
      throw Error(ErrorCode::kUnsupported,
                  "{}: {}: expected {}, got {}; pack the model again with this version",
                  file_.path().string(), kPackedLayoutKey, kPackedLayout, layout);
    }
  }

  const Config& config() const override { return config_; }
  const std::filesystem::path& path() const override { return path_; }
  bool has(const WeightName& name) const override {
    return file_.tensor(packed_name(name)) != nullptr;
  }

  MatrixSource matrix(const WeightName& name, int64_t rows, int64_t cols) const override {
    const TensorView& tensor = require(name);
    const auto note = notes_.find(tensor.name);
    if (note == notes_.end() || tensor.dtype != DType::kU8 || tensor.shape.size() != 2) {
      throw Error(ErrorCode::kInvalidInput, "{}: expected a packed matrix", where(tensor));
    }
    const auto& [dtype, n_rows, n_cols] = note->second;
    if (n_rows != rows || n_cols != cols) {
      throw Error(ErrorCode::kInvalidInput, "{}: expected ({}, {}), got ({}, {})", where(tensor),
                  rows, cols, n_rows, n_cols);
    }
    return {.dtype = dtype,
            .data = tensor.data,
            .rows = rows,
            .cols = cols,
            .row_bytes = size_t(tensor.shape[1]),
            .n_panels = tensor.shape[0],
            .where = where(tensor)};
  }

  std::vector<float> vector(const WeightName& name, int64_t n) const override {
    const TensorView& tensor = require(name);
    if (tensor.dtype != DType::kF32 || tensor.elements() != n) {
      throw Error(ErrorCode::kInvalidInput, "{}: expected F32 ({}), got {} {}", where(tensor), n,
                  info(tensor.dtype).name, shape_text(tensor.shape));
    }
    std::vector<float> values(size_t(n), 0.0f);
    std::memcpy(values.data(), tensor.data, tensor.bytes);
    return values;
  }

  std::vector<const TensorView*> tensors() const override {
    std::vector<const TensorView*> all;
    for (const TensorView& tensor : file_.tensors()) all.push_back(&tensor);
    return all;
  }

 private:
  const TensorView& require(const WeightName& name) const {
    if (const TensorView* tensor = file_.tensor(packed_name(name))) return *tensor;
    throw Error(ErrorCode::kNotFound, "{}: tensor {}: missing", file_.path().string(),
                packed_name(name));
  }
  std::string where(const TensorView& tensor) const {
    return file_.path().string() + ": tensor " + tensor.name;
  }

  std::filesystem::path path_;
  Config config_;
  SafetensorsFile file_;
  std::unordered_map<std::string, MatrixNote> notes_;
};

}  // namespace

std::string packed_name(const WeightName& name) {
  std::string text = name.name;
  if (name.expert >= 0) text += "#" + std::to_string(name.expert);
  if (name.n_parts > 1) {
    text += "@" + std::to_string(name.part) + "/" + std::to_string(name.n_parts);
  }
  return text;
}

std::unique_ptr<Checkpoint> open_packed_checkpoint(const std::filesystem::path& folder) {
  return std::make_unique<PackedCheckpoint>(folder);
}

}  // namespace sluice
