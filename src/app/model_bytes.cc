#include "app/model_bytes.h"

#include <algorithm>
#include <cmath>

#include "cache/storage.h"

namespace sluice {
namespace {

class Counter : public Weights {
 public:
  explicit Counter(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}
  PartBytes bytes;

 protected:
  bool has(const WeightName& name) const override { return checkpoint_.has(name); }
  void add_matrix(PackedMatrix& m, const WeightName& name, int64_t rows, int64_t cols) override {
    m = packed_shape(checkpoint_.matrix(name, rows, cols), rows, cols);
    if (name.expert < 0) {
      bytes.dense += int64_t(m.bytes());
    } else {
      bytes.experts += int64_t(m.bytes());
      bytes.n_experts = std::max(bytes.n_experts, name.expert + 1);
    }
  }
  void add_vector(std::vector<float>&, const WeightName&, int64_t n) override {
    bytes.dense += n * int64_t(sizeof(float));
  }

 private:
  const Checkpoint& checkpoint_;
};

}  // namespace

double PartBytes::read_by(int n_rows) const {
  if (n_experts == 0) return double(dense);
  const double missed = std::pow(1 - double(n_active) / n_experts, n_rows);
  return double(dense) + double(experts) * (1 - missed);
}

int64_t ModelBytes::total() const {
  int64_t bytes = embedding.total() + (tied ? 0 : head.total());
  for (const PartBytes& block : blocks) bytes += block.total();
  return bytes;
}

double ModelBytes::read_by(int n_rows) const {
  double bytes = head.read_by(n_rows);
  for (const PartBytes& block : blocks) bytes += block.read_by(n_rows);
  return bytes;
}

ModelBytes count_bytes(Model& model, const Checkpoint& checkpoint) {
  const Config& config = checkpoint.config();
  const int64_t n_active = config.integer("num_experts_per_tok", 1);
  const auto count = [&](const std::string& prefix, auto declare) {
    Counter counter(checkpoint);
    counter.set_prefix(prefix);
    declare(counter);
    PartBytes& bytes = counter.bytes;
    bytes.n_active = int(std::clamp<int64_t>(n_active, 0, bytes.n_experts));
    return bytes;
  };
  ModelBytes bytes;
  bytes.tied = model.tied;
  bytes.embedding = count("", [&](Weights& w) { model.embed_weights(w); });
  for (PlacedBlock& placed : model.blocks) {
    bytes.blocks.push_back(count(placed.prefix, [&](Weights& w) { placed.block->weights(w); }));
  }
  bytes.head = count("", [&](Weights& w) { model.head_weights(w); });
  return bytes;
}

double cache_read_bytes(const Model& model, int64_t depth, bool f16) {
  double bytes = 0;
  for (const PlacedBlock& placed : model.blocks) {
    const CacheSpec spec = placed.block->cache();
    const int64_t visible = spec.window > 0 ? std::min<int64_t>(depth, spec.window) : depth;
    if (spec.kind == CacheKind::kPagedKv) {
      bytes += double(visible) * double(cache_bytes_per_token(spec, f16));
    } else if (spec.kind == CacheKind::kRecurrent) {
      bytes += double(spec.state_floats) * sizeof(float);
    }
  }
  return bytes;
}

}  // namespace sluice
