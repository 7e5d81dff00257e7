// What earlier sequences left in the cache: a tree of full pages, keyed by the tokens they hold.
// The path from the root to a node spells a prefix; the node's page holds its last kPageTokens
// positions and, for recurrent models, perhaps a slot with the state after them.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cache/cache_spec.h"
#include "cache/ref_pool.h"

namespace sluice {

/// The recurrent state after `n_positions` tokens, kept in `slot`.
struct StateSnapshot {
  int n_positions = 0;
  int32_t slot = -1;
};

class PrefixTree {
 public:
  /// The tree holds one reference on each page and slot it names; at most `max_snapshots` slots.
  PrefixTree(RefPool& pages, RefPool& slots, int max_snapshots);
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  struct Match {
    std::vector<int32_t> pages;
    int32_t state = -1;
  };
  /// The longest known prefix of `tokens` in full pages, at most `max_pages`. With `needs_state` it
  /// ends where a snapshot is. The caller receives a reference on every page and on the slot.
  Match match(std::span<const int32_t> tokens, int max_pages, bool needs_state);

  /// Adds `pages`, which hold the first pages.size() * kPageTokens of `tokens`, and the snapshots
  /// that fall on their ends. Where a page with the same tokens is known already, the caller's is
  /// replaced by it and given back, so that whoever holds a page of the tree holds the path to it.
  void insert(std::span<const int32_t> tokens, std::span<int32_t> pages,
              std::span<const StateSnapshot> snapshots);

  /// Gives up the least recently used leaf whose page nobody else holds; false if there is none.
  bool evict_page();
  /// Gives up the least recently used snapshot (its pages stay); false if there is none.
  bool evict_snapshot();

  int n_pages() const { return static_cast<int>(ages_.size()); }
  int n_snapshots() const { return static_cast<int>(state_ages_.size()); }

 private:
  using Chunk = std::array<int32_t, kPageTokens>;
  struct Node {
    Node* parent = nullptr;
    std::map<Chunk, std::unique_ptr<Node>> children;
    const Chunk* chunk = nullptr;  // this node's key in parent->children
    int32_t page = -1;
    int32_t state = -1;
    std::list<Node*>::iterator age, state_age;
  };

  static Chunk chunk_at(std::span<const int32_t> tokens, size_t page);
  Node* child(Node* node, const Chunk& chunk, int32_t page);
  void touch(Node* last);
  void keep_state(Node* node, int32_t slot);
  void drop_state(Node* node);

  RefPool& pages_;
  RefPool& slots_;
  size_t max_snapshots_;
  Node root_;
  // Least recently used first. A parent is used whenever its child is, and stands behind it.
  std::list<Node*> ages_, state_ages_;
};

}  // namespace sluice
