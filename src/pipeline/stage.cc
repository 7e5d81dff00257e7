#include "pipeline/stage.h"

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

/// Rows whose logits are computed at once; bounds the memory of long scored prompts.
constexpr int64_t kHeadRows = 32;

}  // namespace

Stage::Stage(Model& model, const Checkpoint& checkpoint, const StagePlan& plan, bool embeds,
             const StageOptions& options, Pass& pass)
    : model_(model), pass_(pass), caches_(model.blocks.size()) {
  WeightLoader loader(checkpoint);
  if (embeds) model.embed_weights(loader);
  for (const auto& [first, last] : plan.blocks) {
    for (int b = first; b < last; ++b) {
      PlacedBlock& placed = model.blocks[size_t(b)];
      loader.set_prefix(placed.prefix);
      placed.block->weights(loader);
      caches_[size_t(b)] = CacheStorage(placed.block->cache(), options.pools, options.cache_f16);
    }
  }
  loader.set_prefix("");
  if (plan.head) model.head_weights(loader);
  weights_ = loader.pack(pass.pool());
  mapped_bytes_ = loader.mapped_bytes();
  widened_ = loader.widened();
}

int64_t Stage::cache_bytes() const {
  int64_t bytes = 0;
  for (const CacheStorage& cache : caches_) bytes += int64_t(cache.bytes());
  return bytes;
}

void Stage::begin(const Batch& batch) {
  positions_.clear();
  tokens_.clear();
  state_save_.clear();
  segments_.clear();
  for (const BatchRow& row : batch.rows) {
    positions_.push_back(row.position);
    tokens_.push_back(row.token);
    state_save_.push_back(row.state_save);
  }
  for (const BatchSequence& s : batch.sequences) {
    if (s.n_rows == 0) continue;
    segments_.push_back(
        {.first_row = s.first_row,
         .n_rows = s.n_rows,
         .first_position = positions_[size_t(s.first_row)],
         .pages = s.pages,
         .state_load = s.state_load,
         .state_save = std::span(state_save_).subspan(size_t(s.first_row), size_t(s.n_rows))});
  }
  pass_.begin(positions_, segments_);
}

void Stage::run(Frame& frame, const Hop& hop) {
  const Batch& batch = frame.batch;
  pass_.arena().release({});  // all of it: the hop before may have ended in an exception
  begin(batch);
  for (int b = hop.first_block; b < hop.last_block; ++b) {
    for (const PageCopy& copy : batch.page_copies) {
      caches_[size_t(b)].copy_page(copy.from, copy.to);
    }
  }
  Tensor x{.data = frame.activations(),
           .n = int64_t(batch.rows.size()),
           .dim = model_.frame_width(),
           .stride = frame.stride};
  if (hop.embed) model_.embed(pass_, tokens_.data(), x);
  const Arena::Mark mark = pass_.arena().mark();
  for (int b = hop.first_block; b < hop.last_block; ++b) {
    pass_.bind(caches_[size_t(b)].kv(), caches_[size_t(b)].state());
    model_.blocks[size_t(b)].block->run(pass_, x);
    pass_.arena().release(mark);
  }
  if (hop.head) finish(frame, x);
}

/// Calls `use(rows, first)` for the wanted rows of `x`, a few at a time; `first` counts them.
template <typename Use>
void Stage::gather(const Tensor& x, const Use& use) {
  for (size_t first = 0; first < wanted_.size(); first += kHeadRows) {
    const int64_t n = std::min<int64_t>(kHeadRows, int64_t(wanted_.size() - first));
    const Arena::Mark mark = pass_.arena().mark();
    Tensor rows = pass_.tensor(n, x.dim);
    for (int64_t i = 0; i < n; ++i) {
      std::memcpy(rows.row(i), x.row(wanted_[first + size_t(i)]), size_t(x.dim) * sizeof(float));
    }
    use(rows, first);
    pass_.arena().release(mark);
  }
}

void Stage::finish(Frame& frame, const Tensor& x) {
  const Batch& batch = frame.batch;
  Result& result = frame.result;
  const auto want = [&](const auto& wanted) {
    wanted_.clear();
    for (int32_t r = 0; r < int32_t(batch.rows.size()); ++r) {
      if (wanted(batch.rows[size_t(r)])) wanted_.push_back(r);
    }
  };
  want([](const BatchRow& row) { return row.hidden; });
  gather(x, [&](const Tensor& rows, size_t) {
    const Tensor hidden = model_.final_norm(pass_, rows);  // (n, dim)
    for (int64_t i = 0; i < hidden.n; ++i) {
      result.hidden.insert(result.hidden.end(), hidden.row(i), hidden.row(i) + hidden.dim);
    }
  });
  want([](const BatchRow& row) { return row.wanted(); });
  gather(x, [&](const Tensor& rows, size_t first) {
    const Tensor logits = model_.head(pass_, rows);  // (n, vocab)
    for (int64_t i = 0; i < logits.n; ++i) {
      const int32_t r = wanted_[first + size_t(i)];
      const std::span<const float> values(logits.row(i), size_t(model_.vocab));
      if (batch.rows[size_t(r)].logits) {
        result.logits.insert(result.logits.end(), values.begin(), values.end());
      }
      result.rows.push_back(sampler_.run(batch, r, values));
    }
  });
}

}  // namespace sluice
