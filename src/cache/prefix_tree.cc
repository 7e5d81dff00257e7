#include "cache/prefix_tree.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice {

PrefixTree::PrefixTree(RefPool& pages, RefPool& slots, int max_snapshots)
    : pages_(pages),
      slots_(slots),
      max_snapshots_(static_cast<size_t>(std::max(max_snapshots, 0))) {}

PrefixTree::~PrefixTree() {
  for (Node* node : ages_) {
    drop_state(node);
    pages_.release(node->page);
  }
  // Leaves first, so that a long prefix is not destroyed by deep recursion.
  while (!ages_.empty()) {
    for (auto it = ages_.begin(); it != ages_.end();) {
      Node* node = *it;
      if (node->children.empty()) {
        it = ages_.erase(it);
        node->parent->children.erase(*node->chunk);
      } else {
        ++it;
      }
    }
  }
}

PrefixTree::Chunk PrefixTree::chunk_at(std::span<const int32_t> tokens, size_t page) {
  Chunk chunk;
  std::copy_n(tokens.begin() + static_cast<std::ptrdiff_t>(page * kPageTokens), kPageTokens,
              chunk.begin());
  return chunk;
}

PrefixTree::Match PrefixTree::match(std::span<const int32_t> tokens, int max_pages,
                                    bool needs_state) {
  const size_t limit = std::min(tokens.size() / kPageTokens, static_cast<size_t>(max_pages));
  Match match;
  std::vector<int32_t> path;
  Node* node = &root_;
  Node* last = &root_;
  while (path.size() < limit) {
    auto it = node->children.find(chunk_at(tokens, path.size()));
    if (it == node->children.end()) break;
    node = it->second.get();
    path.push_back(node->page);
    if (needs_state && node->state < 0) continue;
    last = node;
    match.pages.insert(match.pages.end(), path.begin() + std::ssize(match.pages), path.end());
  }
  touch(last);
  for (int32_t page : match.pages) pages_.add_ref(page);
  if (needs_state && last != &root_) {
    match.state = last->state;
    slots_.add_ref(match.state);
  }
  return match;
}

void PrefixTree::insert(std::span<const int32_t> tokens, std::span<int32_t> pages,
                        std::span<const StateSnapshot> snapshots) {
  CHECK(tokens.size() / kPageTokens >= pages.size());
  Node* node = &root_;
  for (size_t i = 0; i < pages.size(); ++i) {
    node = child(node, chunk_at(tokens, i), pages[i]);
    if (node->page != pages[i]) {
      pages_.add_ref(node->page);
      pages_.release(std::exchange(pages[i], node->page));
    }
    const int end = static_cast<int>(i + 1) * kPageTokens;
    for (const StateSnapshot& snapshot : snapshots) {
      if (snapshot.n_positions == end && node->state < 0) keep_state(node, snapshot.slot);
    }
  }
  touch(node);
  while (state_ages_.size() > max_snapshots_) evict_snapshot();
}

PrefixTree::Node* PrefixTree::child(Node* node, const Chunk& chunk, int32_t page) {
  auto [it, is_new] = node->children.try_emplace(chunk);
  if (is_new) {
    it->second = std::make_unique<Node>();
    Node* added = it->second.get();
    added->parent = node;
    added->chunk = &it->first;
    added->page = page;
    added->age = ages_.insert(ages_.end(), added);
    pages_.add_ref(page);
  }
  return it->second.get();
}

void PrefixTree::touch(Node* last) {
  if (last->state >= 0) state_ages_.splice(state_ages_.end(), state_ages_, last->state_age);
  for (Node* node = last; node != &root_; node = node->parent) {
    ages_.splice(ages_.end(), ages_, node->age);
  }
}

void PrefixTree::keep_state(Node* node, int32_t slot) {
  slots_.add_ref(slot);
  node->state = slot;
  node->state_age = state_ages_.insert(state_ages_.end(), node);
}

void PrefixTree::drop_state(Node* node) {
  if (node->state < 0) return;
  slots_.release(node->state);
  state_ages_.erase(node->state_age);
  node->state = -1;
}

bool PrefixTree::evict_page() {
  for (size_t n = ages_.size(); n > 0; --n) {
    Node* node = ages_.front();
    if (!node->children.empty() || pages_.refs(node->page) > 1) {
      ages_.splice(ages_.end(), ages_, ages_.begin());  // in use, hence recent
      continue;
    }
    drop_state(node);
    pages_.release(node->page);
    ages_.pop_front();
    node->parent->children.erase(*node->chunk);
    return true;
  }
  return false;
}

bool PrefixTree::evict_snapshot() {
  if (state_ages_.empty()) return false;
  drop_state(state_ages_.front());
  return true;
}

}  // namespace sluice
