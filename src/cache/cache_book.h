// The books of the cache: who holds which page and which state slot. The stages own the memory and
// do as the numbers in a batch say; nothing here touches it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/cache_spec.h"
#include "cache/prefix_tree.h"
#include "cache/ref_pool.h"

namespace sluice {

/// What one sequence holds. Pages and slots may be shared; what is about to be written is not.
struct SequenceCache {
  std::vector<int32_t> pages;  // of positions [32 i, 32 i + 32)
  int32_t state = -1;          // slot with the state after the last scheduled row; -1: zero
  int32_t spare = -1;          // slot set aside for the first save
  std::vector<StateSnapshot> snapshots;  // page-aligned states, kept for the prefix tree
};

struct CopyOnWrite {
  int32_t from = -1, to = -1;  // -1: nothing to copy
};

class CacheBook {
 public:
  explicit CacheBook(CachePools pools);

  bool recurrent() const { return slots_.size() > 0; }
  int n_pages() const { return pages_.size(); }
  int n_free_pages() const { return pages_.n_free(); }
  int n_slots() const { return slots_.size(); }
  int n_free_slots() const { return slots_.n_free(); }
  const PrefixTree& tree() const { return tree_; }
  static int pages_for(int n_positions) { return (n_positions + kPageTokens - 1) / kPageTokens; }

  /// Takes the longest known prefix of `tokens` into the empty `cache`, at most `max_positions`;
  /// returns how many positions that is.
  int attach(std::span<const int32_t> tokens, int max_positions, SequenceCache& cache);
  /// Pages for `n_positions` and, for recurrent models, a slot to save in; `n_left` pages stay free
  /// afterwards. All or nothing. Gives up old prefixes as needed.
  bool reserve(SequenceCache& cache, int n_positions, int n_left);
  /// Pages up to `n_positions`. All or nothing. Gives up old prefixes as needed.
  bool grow(SequenceCache& cache, int n_positions);
  /// Makes the page of position `first` the sequence's own if rows are to be written from there on.
  /// False if no page is left; otherwise `copy` says what the stages must copy.
  bool own_page(SequenceCache& cache, int first, CopyOnWrite& copy);
  /// Sets a slot aside for the next state if the current one must not be overwritten. False if none
  /// is left even after giving up snapshots.
  bool ensure_slot(SequenceCache& cache);
  /// The slot that receives the next state; needs ensure_slot(). It becomes cache.state. The slot
  /// it was loaded from, if another, keeps its reference, which is returned in `loaded` (else -1):
  /// release it when the batch has come back, as its sequences are computed in any order.
  int32_t advance_state(SequenceCache& cache, int32_t& loaded);
  /// Replaces cache.state by `slot`, whose reference is taken over.
  void set_state(SequenceCache& cache, int32_t slot);
  /// A further slot with one reference, e.g. for the state after a guess; -1 if none is left.
  int32_t take_slot();
  void release_slot(int32_t slot) { slots_.release(slot); }
  /// Remembers that `slot` holds the state after `n_positions`, a multiple of kPageTokens.
  void add_snapshot(SequenceCache& cache, int n_positions, int32_t slot);
  void drop_snapshots(SequenceCache& cache);

  /// Gives back the pages that hold only positions from `n_positions` on.
  void trim(SequenceCache& cache, int n_positions);
  /// A second holder of the pages of the first `n_positions`, and of the state, which must be the
  /// one after them. Whoever writes first copies.
  SequenceCache fork(const SequenceCache& cache, int n_positions);
  /// Offers the pages of the first `n_positions` of `tokens` to later sequences. No batch with rows
  /// of this sequence may be under way: its pages may be exchanged for equal ones.
  void remember(std::span<const int32_t> tokens, int n_positions, SequenceCache& cache);
  void release(SequenceCache& cache);
  /// Forgets all prefixes.
  void forget();

 private:
  int32_t take_page();

  RefPool pages_, slots_;
  PrefixTree tree_;
};

}  // namespace sluice
