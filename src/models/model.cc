#include "models/model.h"

#include <algorithm>

#include "base/error.h"

namespace sluice {

#define MODEL(name, make, golden) std::unique_ptr<Model> make(const Checkpoint& checkpoint);
#include "models/models.inc"
#undef MODEL

namespace {

struct Architecture {
  const char* name;
  std::unique_ptr<Model> (*make)(const Checkpoint&);
};

constexpr Architecture kArchitectures[] = {
#define MODEL(name, make, golden) {name, make},
#include "models/models.inc"
#undef MODEL
};

constexpr uintptr_t kPackedAlign = 64;

/// Sums what would be packed.
class WeightCounter : public Weights {
 public:
  explicit WeightCounter(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  int64_t bytes = 0;

 protected:
  bool has(const WeightName& name) const override { return checkpoint_.has(name); }
  void add_matrix(PackedMatrix& m, const WeightName& name, int64_t rows, int64_t cols) override {
    m = packed_shape(checkpoint_.matrix(name, rows, cols), rows, cols);
    bytes += int64_t(m.bytes());
  }
  void add_vector(std::vector<float>&, const WeightName&, int64_t n) override {
    bytes += n * int64_t(sizeof(float));
  }

 private:
  const Checkpoint& checkpoint_;
};

}  // namespace

PackedMatrix packed_shape(const MatrixSource& source, int64_t rows, int64_t cols) {
  const DType dtype = packed_dtype(source.dtype);
  return {
      .dtype = dtype, .rows = rows, .cols = cols, .panel_bytes = packed_panel_bytes(dtype, cols)};
}

WeightName Weights::full_name(std::string_view name, int expert, Part part) const {
  return {.name = prefix_ + std::string(name),
          .expert = expert,
          .part = part.index,
          .n_parts = part.of};
}

void Weights::experts(std::vector<PackedMatrix>& m, std::string_view name, int64_t n, int64_t rows,
                      int64_t cols, Part part) {
  m.resize(size_t(n));
  for (int e = 0; e < int(n); ++e) {
    add_matrix(m[size_t(e)], full_name(name, e, part), rows, cols);
  }
}

void Model::add(int64_t layer, std::unique_ptr<Block> block) {
  blocks.push_back({fmt::format("model.layers.{}.", layer), int(layer), std::move(block)});
}

void Model::embed_weights(Weights& w) {
  w.matrix(embedding_, "model.embed_tokens.weight", vocab, dim);
}

void Model::head_weights(Weights& w) {
  w.vector(norm_, "model.norm.weight", dim);
  w.matrix(output_, tied ? "model.embed_tokens.weight" : "lm_head.weight", vocab, dim);
}

void Model::embed(Pass& p, const int32_t* tokens, Tensor& x) const {
  p.pool().parallel_for(x.n, 8, [&](int64_t first, int64_t last, int) {
    for (int64_t r = first; r < last; ++r) {
      unpack_row(embedding_, tokens[r], x.row(r));
      for (int64_t i = 0; i < dim; ++i) x.row(r)[i] *= embedding_scale;
    }
  });
}

Tensor Model::final_norm(Pass& p, const Tensor& x) const { return p.rms_norm(x, norm_, norm_eps); }

Tensor Model::head(Pass& p, const Tensor& x) const {
  Tensor logits = p.matmul_fine(final_norm(p, x), output_);  // (n, vocab)
  if (logits_scale != 1) p.scale(logits, logits_scale);
  return logits;
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const Architecture& a : kArchitectures) names.emplace_back(a.name);
  return names;
}

std::unique_ptr<Model> make_model(const Checkpoint& checkpoint) {
  const std::vector<std::string> names = checkpoint.config().texts("architectures");
  for (const std::string& name : names) {
    for (const Architecture& a : kArchitectures) {
      if (name != a.name) continue;
      std::unique_ptr<Model> model = a.make(checkpoint);
      model->architecture = name;
      return model;
    }
  }
  throw Error(ErrorCode::kUnsupported, "{}: architectures: {} is not supported (supported: {})",
              checkpoint.config().what(), names.empty() ? "an empty list" : names.front(),
              fmt::join(architecture_names(), ", "));
}

int64_t packed_weight_bytes(Block& block, const std::string& prefix, const Checkpoint& checkpoint) {
  WeightCounter counter(checkpoint);
  counter.set_prefix(prefix);
  block.weights(counter);
  return counter.bytes;
}

void WeightLoader::add_vector(std::vector<float>& v, const WeightName& name, int64_t n) {
  v = checkpoint_.vector(name, n);
}

void WeightLoader::add_matrix(PackedMatrix& m, const WeightName& name, int64_t rows, int64_t cols) {
  MatrixSource source = checkpoint_.matrix(name, rows, cols);
  if (packed_dtype(source.dtype) != source.dtype) {
    const std::string stored = info(source.dtype).name;
    if (std::find(widened_.begin(), widened_.end(), stored) == widened_.end()) {
      widened_.push_back(stored);
    }
  }
  m = packed_shape(source, rows, cols);
  if (source.n_panels != 0) {
    use_packed(m, source);
    return;
  }
  const auto [known, is_new] = packed_once_.emplace(source.data, pending_.size());
  if (!is_new && pending_[known->second].source.rows == rows) {
    pending_[known->second].targets.push_back(&m);
    return;
  }
  pending_.push_back({{&m}, std::move(source), 0});
}

void WeightLoader::use_packed(PackedMatrix& m, const MatrixSource& source) {
  if (m.dtype != source.dtype || m.n_panels() != source.n_panels ||
      m.panel_bytes != source.row_bytes) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected {} panels of {} bytes, got {} of {}",
                source.where, m.n_panels(), m.panel_bytes, source.n_panels, source.row_bytes);
  }
  if (reinterpret_cast<uintptr_t>(source.data) % kPackedAlign != 0) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected data aligned to {} bytes", source.where,
                kPackedAlign);
  }
  m.data = source.data;
  if (mapped_.insert(source.data).second) mapped_bytes_ += int64_t(m.bytes());
}

PageMemory WeightLoader::pack(ThreadPool& pool) {
  size_t bytes = 0;
  for (Pending& p : pending_) {
    p.offset = bytes;
    bytes += p.targets.front()->bytes();
  }
  PageMemory memory(bytes);
  for (const Pending& p : pending_) {
    PackedMatrix& m = *p.targets.front();
    std::byte* out = memory.data() + p.offset;
    pool.parallel_for(m.n_panels(), 4, [&](int64_t first, int64_t last, int) {
      pack_panels(p.source, m.dtype, first, last, out + size_t(first) * m.panel_bytes);
    });
    for (PackedMatrix* target : p.targets) target->data = out;
    checkpoint_.release(p.source);
  }
  pending_.clear();
  return memory;
}

}  // namespace sluice
