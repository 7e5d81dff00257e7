#include "weights/gguf_checkpoint.h"

#include <cmath>

#include "base/error.h"
#include "weights/gguf_config.h"
#include "weights/gguf_names.h"
#include "weights/slice.h"

namespace sluice {
namespace {

constexpr int64_t kMaxHeads = 1 << 20;

class GgufCheckpoint final : public Checkpoint {
 public:
  explicit GgufCheckpoint(std::unique_ptr<GgufFile> file)
      : file_(std::move(file)),
        architecture_(gguf_architecture(*file_)),
        config_(config_from_gguf(*file_)) {}

  const Config& config() const override { return config_; }
  const std::filesystem::path& path() const override { return file_->path(); }
  const GgufFile* gguf() const override { return file_.get(); }

  bool has(const WeightName& name) const override {
    const std::optional<GgufPlace> place = find_in_gguf(*file_, name);
    if (!place) return false;
    const std::vector<int64_t>& shape = place->tensor->shape;
    return name.expert < 0 || (!shape.empty() && name.expert < shape[0]);
  }

  MatrixSource matrix(const WeightName& name, int64_t rows, int64_t cols) const override {
    const GgufPlace place = require(name);
    MatrixSource source = slice_matrix(slice(name, place), rows, cols);
    source.interleaved_heads = interleaved_heads(place, rows);
    return source;
  }

  std::vector<float> vector(const WeightName& name, int64_t n) const override {
    const GgufPlace place = require(name);
    std::vector<float> values = slice_vector(slice(name, place), n);
    if (place.is_negative_exp) {
      for (float& value : values) value = a_log(value, *place.tensor);
    }
    MatrixSource rows;
    rows.rows = n;
    rows.interleaved_heads = interleaved_heads(place, n);
    if (rows.interleaved_heads == 0) return values;
    std::vector<float> sorted(values.size());
    for (int64_t i = 0; i < n; ++i) sorted[size_t(i)] = values[size_t(rows.stored_row(i))];
    return sorted;
  }

  void release(const MatrixSource& source) const override { release_matrix(source); }

  std::vector<const TensorView*> tensors() const override {
    std::vector<const TensorView*> all;
    for (const TensorView& tensor : file_->tensors()) all.push_back(&tensor);
    return all;
  }

 private:
  std::string where(const TensorView& tensor) const {
    return fmt::format("{}: tensor {}", file_->path().string(), tensor.name);
  }

  GgufPlace require(const WeightName& name) const {
    const std::optional<GgufPlace> place = find_in_gguf(*file_, name);
    if (!place) {
      throw Error(ErrorCode::kNotFound, "{}: tensor for {}: missing", file_->path().string(),
                  name.name);
    }
    return *place;
  }

  Slice slice(const WeightName& name, const GgufPlace& place) const {
    return {.tensor = place.tensor,
            .where = where(*place.tensor),
            .expert = name.expert,
            .part = place.part,
            .n_parts = place.n_parts};
  }

  /// ssm_a = -exp(A_log)
  float a_log(float value, const TensorView& tensor) const {
    if (!(value < 0.0f)) {
      throw Error(ErrorCode::kInvalidInput, "{}: expected negative values, got {}", where(tensor),
                  value);
    }
    return float(std::log(-double(value)));
  }

  int interleaved_heads(const GgufPlace& place, int64_t rows) const {
    if (!architecture_.is_interleaved || (!place.is_query && !place.is_key)) return 0;
    const int64_t heads = place.is_query ? gguf_query_heads(*file_, place.layer)
                                         : gguf_key_heads(*file_, place.layer);
    if (heads < 1 || heads > kMaxHeads || place.n_parts != 1 || rows % (2 * heads) != 0) {
      throw Error(ErrorCode::kInvalidInput, "{}: expected {} heads of an even size, got {} rows",
                  where(*place.tensor), heads, rows);
    }
    return int(heads);
  }

  std::unique_ptr<GgufFile> file_;
  const GgufArchitecture& architecture_;
  Config config_;
};

}  // namespace

std::unique_ptr<Checkpoint> open_gguf_checkpoint(std::unique_ptr<GgufFile> file) {
  return std::make_unique<GgufCheckpoint>(std::move(file));
}

}  // namespace sluice
