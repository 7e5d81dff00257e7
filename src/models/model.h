// The contract of an architecture: weights declared once (read by the loader, the forward pass and
// the planner), caches declared per block, and a forward pass written block by block.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/json.h"
#include "cache/cache_spec.h"
#include "kernels/packed.h"
#include "kernels/pass.h"
#include "weights/checkpoint.h"

namespace sluice {

/// Half-open part of a tensor that stacks several matrices by rows, e.g. [gate; up].
struct Part {
  int index = 0, of = 1;
};

/// Receives a block's declarations. Names are relative to the block ("self_attn.q_proj.weight").
class Weights {
 public:
  virtual ~Weights() = default;

  void matrix(PackedMatrix& m, std::string_view name, int64_t rows, int64_t cols, Part part = {}) {
    add_matrix(m, full_name(name, -1, part), rows, cols);
  }
  /// n matrices; see WeightName for names with and without "{}".
  void experts(std::vector<PackedMatrix>& m, std::string_view name, int64_t n, int64_t rows,
               int64_t cols, Part part = {});
  void vector(std::vector<float>& v, std::string_view name, int64_t n) {
    add_vector(v, full_name(name, -1, {}), n);
  }
  /// Left empty if the checkpoint has no such tensor.
  void optional_vector(std::vector<float>& v, std::string_view name, int64_t n) {
    if (has(full_name(name, -1, {}))) vector(v, name, n);
  }

  void set_prefix(std::string prefix) { prefix_ = std::move(prefix); }

 protected:
  virtual bool has(const WeightName& name) const = 0;
  virtual void add_matrix(PackedMatrix& m, const WeightName& name, int64_t rows, int64_t cols) = 0;
  virtual void add_vector(std::vector<float>& v, const WeightName& name, int64_t n) = 0;

 private:
  WeightName full_name(std::string_view name, int expert, Part part) const;
  std::string prefix_;
};

/// Half a layer: a mixer or a feed-forward, with its norm and its residual connection.
class Block {
 public:
  virtual ~Block() = default;
  virtual const char* kind() const = 0;  // "attention", "mamba2", "mlp", "experts"
  virtual void weights(Weights& w) = 0;
  virtual CacheSpec cache() const { return {}; }
  /// x: (n, frame width), updated in place.
  virtual void run(Pass& p, Tensor& x) const = 0;
};

struct PlacedBlock {
  std::string prefix;  // "model.layers.3."
  int layer = 0;
  std::unique_ptr<Block> block;
};

/// embed, a list of blocks, head. The defaults are a plain embedding table and a norm with a linear
/// head.
class Model {
 public:
  virtual ~Model() = default;

  std::string architecture;  // as in config.json's `architectures`
  int64_t dim = 0;           // hidden_size
  int64_t vocab = 0;         // vocab_size
  int64_t max_context = 0;   // max_position_embeddings
  float norm_eps = 1e-5f;
  float embedding_scale = 1;  // embeddings are multiplied by it
  float logits_scale = 1;     // logits are multiplied by it
  bool tied = false;          // the head is the embedding table
  std::vector<PlacedBlock> blocks;

  /// Appends a block whose weights start with "model.layers.<layer>.".
  void add(int64_t layer, std::unique_ptr<Block> block);

  /// Floats per row that travel between stages.
  virtual int64_t frame_width() const { return dim; }
  virtual void embed_weights(Weights& w);
  virtual void head_weights(Weights& w);
  /// x: (n, frame width) for n tokens in [0, vocab).
  virtual void embed(Pass& p, const int32_t* tokens, Tensor& x) const;
  /// x: (n, frame width) -> (n, dim): the hidden states that the head turns into logits.
  virtual Tensor final_norm(Pass& p, const Tensor& x) const;
  /// x: (n, frame width) -> (n, vocab)
  virtual Tensor head(Pass& p, const Tensor& x) const;

 protected:
  PackedMatrix embedding_;   // (vocab, dim)
  PackedMatrix output_;      // (vocab, dim)
  std::vector<float> norm_;  // (dim)
};

/// The architecture that the checkpoint's config names, without weights. Throws kUnsupported with
/// the list of architectures if there is none, and kInvalidInput for sizes that make no sense.
std::unique_ptr<Model> make_model(const Checkpoint& checkpoint);
/// Names of models.inc, for messages and for the test that demands a golden folder for each.
std::vector<std::string> architecture_names();

/// What `source` becomes when it is packed; without data.
PackedMatrix packed_shape(const MatrixSource& source, int64_t rows, int64_t cols);
/// Bytes of a block's weights as packed, from the checkpoint's types, without loading any.
int64_t packed_weight_bytes(Block& block, const std::string& prefix, const Checkpoint& checkpoint);

/// Loads and packs the weights that are declared to it into memory of its own.
class WeightLoader : public Weights {
 public:
  explicit WeightLoader(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  /// Packs everything declared so far, on `pool`; the matrices become valid. Call once.
  PageMemory pack(ThreadPool& pool);
  /// Types without a packed kernel that were widened, for a notice: "IQ3_S".
  const std::vector<std::string>& widened() const { return widened_; }
  /// Bytes of matrices that the checkpoint holds in kernel layout; they are used where they are.
  int64_t mapped_bytes() const { return mapped_bytes_; }

 protected:
  bool has(const WeightName& name) const override { return checkpoint_.has(name); }
  void add_matrix(PackedMatrix& m, const WeightName& name, int64_t rows, int64_t cols) override;
  void add_vector(std::vector<float>& v, const WeightName& name, int64_t n) override;

 private:
  struct Pending {
    std::vector<PackedMatrix*> targets;  // a tied matrix is packed once
    MatrixSource source;
    size_t offset = 0;
  };
  void use_packed(PackedMatrix& m, const MatrixSource& source);

  const Checkpoint& checkpoint_;
  std::vector<Pending> pending_;
  std::unordered_map<const std::byte*, size_t> packed_once_;  // first byte -> index into pending_
  std::vector<std::string> widened_;
  std::unordered_set<const std::byte*> mapped_;
  int64_t mapped_bytes_ = 0;
};

}  // namespace sluice
