// A model on disk, whatever its container: a config in Hugging Face spelling and tensors that are
// asked for by their Hugging Face names. Files are mapped, never copied.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "weights/tensor.h"

namespace sluice {

/// Which rows of which checkpoint tensor make up one matrix of the model.
struct WeightName {
  std::string name;  // Hugging Face name, e.g. "model.layers.0.self_attn.q_proj.weight".
                     // For one of many experts it holds "{}" where published files that keep one
                     // tensor per expert have the number: "...mlp.experts.{}.gate_proj.weight";
                     // a name without "{}" is a tensor of shape (n_experts, rows, cols).
  int expert = -1;   // which expert; -1: not an expert's
  int part = 0;      // tensors that stack several matrices by rows, e.g. [gate; up]:
  int n_parts = 1;   //   this one is rows [part * rows, (part + 1) * rows) of n_parts * rows
};

/// A (rows, cols) matrix in a mapped file. Row i starts at data + i * row_bytes.
struct MatrixSource {
  DType dtype = DType::kF32;
  const std::byte* data = nullptr;
  int64_t rows = 0, cols = 0;
  size_t row_bytes = 0;
  /// Not 0: the rows of each of this many heads are stored with rotary pairs as neighbours (GGUF's
  /// `llama`): stored row h*d + 2i + j is row h*d + i + j*d/2 of the Hugging Face matrix.
  int interleaved_heads = 0;
  /// Not 0: the matrix is in kernel layout already (packed_checkpoint.h): so many panels of
  /// row_bytes.
  int64_t n_panels = 0;
  std::string where;  // "model.gguf: tensor blk.0.attn_q.weight", for messages

  /// The stored row that holds row `row` of the Hugging Face matrix.
  int64_t stored_row(int64_t row) const;
};

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  /// config.json as published, or made from GGUF metadata with the same keys.
  virtual const Config& config() const = 0;
  virtual bool has(const WeightName& name) const = 0;
  /// Throws kNotFound without the tensor, kInvalidInput if its shape is not the expected one.
  virtual MatrixSource matrix(const WeightName& name, int64_t rows, int64_t cols) const = 0;
  /// `n` values as f32, converted to Hugging Face's convention (GGUF's ssm_a becomes A_log, ...).
  virtual std::vector<float> vector(const WeightName& name, int64_t n) const = 0;
  /// Tells the system that the matrix's pages of the mapping are not needed for now.
  virtual void release(const MatrixSource&) const {}
  /// Every tensor of the file under its own name, in file order; for `sluice inspect`.
  virtual std::vector<const TensorView*> tensors() const = 0;
  /// GGUF only: the metadata keys, for tokenizer and template; nullptr otherwise.
  virtual const class GgufFile* gguf() const { return nullptr; }
  virtual const std::filesystem::path& path() const = 0;
};

/// `path`: a folder with config.json and *.safetensors (single or sharded with an index), or a
/// .gguf file (of a split set: the first part). Throws Error naming file, field and expectation.
std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& path);

}  // namespace sluice
