// For tests: an executor whose model is a hash of the whole prefix, read back through the pages and
// state slots of the batch. A stale page, a wrong slot, a missing copy or a use after free changes
// the tokens; orders that a real pipeline could not keep are reported as errors.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "engine/executor.h"
#include "engine/sampler.h"

namespace sluice {

inline uint64_t fake_mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ (value + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
  return hash ^ (hash >> 29);
}

/// The logits after a prefix with this hash and last token. Mostly repetitive, so that prompt
/// lookup finds something, yet every token of the prefix matters.
inline std::vector<float> fake_logits(uint64_t hash, Token last, int vocab) {
  std::vector<float> logits(static_cast<size_t>(vocab));
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(fake_mix(hash, i) >> 40) * 0x1p-22f;  // [0, 4)
  }
  if (hash % 7 != 0) logits[static_cast<size_t>((last * 5 + 3) % vocab)] += 5;
  return logits;
}

/// The hidden state after that prefix.
constexpr int kFakeDim = 3;
inline std::array<float, kFakeDim> fake_hidden(uint64_t hash, Token last) {
  return {static_cast<float>(hash >> 40), static_cast<float>(hash & 0xffff),
          static_cast<float>(last)};
}

class FakeExecutor : public Executor {
 public:
  FakeExecutor(CachePools pools, int depth, int vocab, uint64_t seed = 1)
      : pools_(pools),
        depth_(depth),
        vocab_(vocab),
        random_(seed),
        pages_(static_cast<size_t>(pools.n_pages)),
        slots_(static_cast<size_t>(pools.n_state_slots)) {
    for (auto& page : pages_) {
      for (Token& token : page) token = static_cast<Token>(random_() % 1000);
    }
    for (uint64_t& slot : slots_) slot = random_();
  }

  void submit(Batch& batch) override {
    check(static_cast<int>(queue_.size()) < depth_, "more batches than depth");
    check(!batch.empty(), "an empty batch");
    check_batch(batch);
    n_max_rows = std::max(n_max_rows, static_cast<int>(batch.rows.size()));
    if (on_submit) on_submit(batch);
    queue_.push_back(std::move(batch));
  }

  void next(Result& result) override {
    const Batch batch = std::move(queue_.front());
    queue_.pop_front();
    result = {};
    result.batch = batch.id;
    result.stages.push_back({.compute_us = us_base + us_per_row * double(batch.rows.size())});
    if (fails && fails(batch)) {
      // A failed batch may have written anything.
      for (const BatchRow& row : batch.rows) {
        write(batch, row, static_cast<Token>(random_() % 1000));
        if (row.state_save >= 0) slots_[size_t(row.state_save)] = random_();
      }
      result.error = "stage 1: out of order";
      return;
    }
    for (PageCopy copy : batch.page_copies) pages_[size_t(copy.to)] = pages_[size_t(copy.from)];
    std::vector<size_t> order(batch.sequences.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<std::vector<float>> logits(batch.rows.size());
    std::vector<uint64_t> hashes(batch.rows.size());
    for (size_t i : order) compute(batch, batch.sequences[i], logits, hashes);
    for (size_t i = 0; i < batch.rows.size(); ++i) {
      if (batch.rows[i].hidden) {
        const auto hidden = fake_hidden(hashes[i], batch.rows[i].token);
        result.hidden.insert(result.hidden.end(), hidden.begin(), hidden.end());
      }
      if (!batch.rows[i].wanted()) continue;
      result.rows.push_back(sampler_.run(batch, static_cast<int>(i), logits[i]));
      if (batch.rows[i].logits) {
        result.logits.insert(result.logits.end(), logits[i].begin(), logits[i].end());
      }
    }
  }

  int depth() const override { return depth_; }
  CachePools pools() const override { return pools_; }

  std::function<bool(const Batch&)> fails;
  std::function<void(const Batch&)> on_submit;
  double us_base = 100, us_per_row = 10;
  int n_max_rows = 0;
  std::set<std::string> errors;

 private:
  void check(bool ok, const char* what) {
    if (!ok) errors.insert(what);
  }

  void check_batch(const Batch& batch) {
    std::set<int32_t> saves, loads;
    std::set<int32_t> copied;
    for (PageCopy copy : batch.page_copies) copied.insert(copy.to);
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      const BatchSequence& s = batch.sequences[i];
      check(s.n_rows > 0, "a sequence without rows");
      for (int r = s.first_row; r < s.first_row + s.n_rows; ++r) {
        const BatchRow& row = batch.rows[size_t(r)];
        check(row.sequence == int(i), "rows of a sequence apart");
        check(row.position == batch.rows[size_t(s.first_row)].position + r - s.first_row,
              "positions with gaps");
        check(size_t(row.position / kPageTokens) < s.pages.size(), "a row without a page");
        check_page(batch, i, s.pages[size_t(row.position / kPageTokens)]);
        if (row.state_save >= 0) {
          check(saves.insert(row.state_save).second, "two states in one slot");
        }
      }
      const BatchRow& last = batch.rows[size_t(s.first_row + s.n_rows - 1)];
      check(s.pages.size() == size_t(last.position / kPageTokens + 1), "pages past the last row");
      check(pools_.n_state_slots == 0 || last.state_save >= 0, "a state that is lost");
    }
    for (const BatchSequence& s : batch.sequences) {
      for (const BatchSequence& other : batch.sequences) {
        if (&s == &other || s.state_load < 0) continue;
        for (int r = other.first_row; r < other.first_row + other.n_rows; ++r) {
          check(batch.rows[size_t(r)].state_save != s.state_load,
                "a state overwritten by a batch mate");
        }
      }
    }
  }

  /// Nobody else who is under way may see a page that sequence `i` of `batch` writes.
  void check_page(const Batch& batch, size_t i, int32_t page) {
    const RequestId id = batch.sequences[i].id;
    auto check_others = [&](const Batch& other) {
      for (const BatchSequence& s : other.sequences) {
        if (s.id == id) continue;
        for (int32_t p : s.pages) check(p != page, "a page written while somebody else reads it");
      }
    };
    check_others(batch);
    for (const Batch& other : queue_) check_others(other);
  }

  void write(const Batch& batch, const BatchRow& row, Token token) {
    const BatchSequence& s = batch.sequences[size_t(row.sequence)];
    pages_[size_t(s.pages[size_t(row.position / kPageTokens)])][row.position % kPageTokens] = token;
  }

  void compute(const Batch& batch, const BatchSequence& s, std::vector<std::vector<float>>& logits,
               std::vector<uint64_t>& hashes) {
    uint64_t state = s.state_load >= 0 ? slots_[size_t(s.state_load)] : 0;
    for (int r = s.first_row; r < s.first_row + s.n_rows; ++r) {
      const BatchRow& row = batch.rows[size_t(r)];
      write(batch, row, row.token);
      uint64_t paged = 0;
      for (int p = 0; p <= row.position; ++p) {
        paged = fake_mix(
            paged,
            uint64_t(pages_[size_t(s.pages[size_t(p / kPageTokens)])][size_t(p % kPageTokens)]));
      }
      state = fake_mix(state, uint64_t(row.token));
      if (row.state_save >= 0) slots_[size_t(row.state_save)] = state;
      const bool agree = pools_.n_state_slots == 0 || state == paged;
      hashes[size_t(r)] = agree ? paged : paged ^ state;
      logits[size_t(r)] = fake_logits(hashes[size_t(r)], row.token, vocab_);
    }
  }

  CachePools pools_;
  int depth_;
  int vocab_;
  std::mt19937_64 random_;
  std::vector<std::array<Token, kPageTokens>> pages_;
  std::vector<uint64_t> slots_;
  std::deque<Batch> queue_;
  Sampler sampler_;
};

}  // namespace sluice
