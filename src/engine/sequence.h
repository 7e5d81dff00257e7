// A request being served.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/cache_book.h"
#include "engine/drafter.h"
#include "engine/request.h"

namespace sluice {

struct Sequence {
  RequestId id = 0;
  Request request;
  std::vector<Token> tokens;  // the prompt, then what was generated
  int n_prompt = 0;
  int limit = 0;  // most tokens it may reach

  /// Smaller is sooner. A level of priority is worth a fixed time of waiting, so the key does not
  /// change while the sequence waits, and newer ones cannot pass it for ever.
  double key = 0;

  int n_computed = 0;      // positions whose rows have come back
  int n_scheduled = 0;     // positions whose rows were given out
  int n_in_flight = 0;     // batches under way with rows of it
  uint64_t last_turn = 0;  // when it was last given rows, counted over all sequences
  bool running = false;    // holds cache space
  bool done = false;       // finished; waits only for its batches to come back
  bool muted = false;      // its sink wants no more

  SequenceCache cache;
  PromptLookup lookup;
  bool speculates = false;
  bool looks_up = false;  // speculates by `lookup`
  std::shared_ptr<const SamplingParams> sampling;
  std::shared_ptr<const SamplingParams> sampling_no_end;  // with the end tokens biased away

  int next_score_row = 0;   // first row whose score was not asked for yet
  int next_vector_row = 0;  // likewise its logits or hidden state
  std::vector<float> prompt_logprobs;
  int n_cached = 0;
  double admitted_us = 0;
  bool spoke = false;  // its first event was given

  int n_tokens() const { return static_cast<int>(tokens.size()); }
  int n_generated() const { return n_tokens() - n_prompt; }
  /// How many tokens memory is set aside for from the start.
  size_t n_expected() const {
    constexpr int64_t kMost = 1 << 16;
    return static_cast<size_t>(
        std::min({int64_t{n_prompt} + request.max_tokens, int64_t{limit}, kMost}));
  }
  bool wants_vectors() const { return request.want_logits || request.want_hidden; }
  int n_pending() const { return n_tokens() - n_scheduled; }
  /// Its only row to compute is that of the last token, and nothing of it is under way.
  bool decodes() const { return n_pending() == 1 && n_in_flight == 0; }
  /// No token stops it.
  bool never_ends() const { return request.ignore_end || request.end_tokens.empty(); }
};

/// Who is served first.
struct SoonerSequence {
  bool operator()(const Sequence* a, const Sequence* b) const {
    return a->key != b->key ? a->key < b->key : a->id < b->id;
  }
};

/// Sequences, sooner ones first: few come and go, and every batch looks at all of them.
class SequenceList {
 public:
  void insert(Sequence* s) { all_.insert(place(s), s); }
  /// If it is in the list.
  void erase(Sequence* s) {
    const auto at = place(s);
    if (at != all_.end() && *at == s) all_.erase(at);
  }
  size_t size() const { return all_.size(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  auto rbegin() const { return all_.rbegin(); }
  auto rend() const { return all_.rend(); }

 private:
  std::vector<Sequence*>::iterator place(Sequence* s) {
    return std::lower_bound(all_.begin(), all_.end(), s, SoonerSequence());
  }

  std::vector<Sequence*> all_;
};

}  // namespace sluice
