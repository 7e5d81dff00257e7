#include "cache/cache_book.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice {

// At most half of the slots hold snapshots, so that old prefixes never crowd out guesses.
CacheBook::CacheBook(CachePools pools)
    : pages_(pools.n_pages),
      slots_(pools.n_state_slots),
      tree_(pages_, slots_, slots_.size() / 2) {}

int CacheBook::attach(std::span<const int32_t> tokens, int max_positions, SequenceCache& cache) {
  CHECK(cache.pages.empty() && cache.state < 0);
  PrefixTree::Match match =
      tree_.match(tokens, std::max(max_positions, 0) / kPageTokens, recurrent());
  cache.pages = std::move(match.pages);
  cache.state = match.state;
  return static_cast<int>(cache.pages.size()) * kPageTokens;
}

bool CacheBook::reserve(SequenceCache& cache, int n_positions, int n_left) {
  const int n_needed = pages_for(n_positions) - static_cast<int>(cache.pages.size()) + n_left;
  if (n_needed > pages_.n_free() + tree_.n_pages()) return false;
  if (recurrent() && !ensure_slot(cache)) return false;
  while (pages_.n_free() < n_needed) {
    if (!tree_.evict_page()) return false;
  }
  return grow(cache, n_positions);
}

bool CacheBook::grow(SequenceCache& cache, int n_positions) {
  const size_t before = cache.pages.size();
  const auto wanted = static_cast<size_t>(pages_for(n_positions));
  while (cache.pages.size() < wanted) {
    const int32_t page = take_page();
    if (page < 0) {
      trim(cache, static_cast<int>(before) * kPageTokens);
      return false;
    }
    cache.pages.push_back(page);
  }
  return true;
}

bool CacheBook::own_page(SequenceCache& cache, int first, CopyOnWrite& copy) {
  copy = {};
  const auto index = static_cast<size_t>(first / kPageTokens);
  if (index >= cache.pages.size() || pages_.refs(cache.pages[index]) == 1) return true;
  const int32_t page = take_page();
  if (page < 0) return false;
  if (first % kPageTokens != 0) copy = {cache.pages[index], page};
  pages_.release(cache.pages[index]);
  cache.pages[index] = page;
  return true;
}

bool CacheBook::ensure_slot(SequenceCache& cache) {
  for (;;) {
    if (cache.spare >= 0) return true;
    if (cache.state >= 0 && slots_.refs(cache.state) == 1) return true;
    cache.spare = slots_.take();
    if (cache.spare >= 0 || tree_.evict_snapshot()) continue;
    if (cache.snapshots.empty()) return false;
    slots_.release(cache.snapshots.front().slot);
    cache.snapshots.erase(cache.snapshots.begin());
  }
}

int32_t CacheBook::advance_state(SequenceCache& cache, int32_t& loaded) {
  loaded = -1;
  if (cache.state >= 0 && slots_.refs(cache.state) == 1) return cache.state;
  CHECK(cache.spare >= 0);
  loaded = cache.state;
  cache.state = std::exchange(cache.spare, -1);
  return cache.state;
}

void CacheBook::set_state(SequenceCache& cache, int32_t slot) {
  if (cache.state == slot) return;
  if (cache.state >= 0) slots_.release(cache.state);
  cache.state = slot;
}

int32_t CacheBook::take_slot() {
  int32_t slot = slots_.take();
  while (slot < 0 && tree_.evict_snapshot()) slot = slots_.take();
  return slot;
}

void CacheBook::add_snapshot(SequenceCache& cache, int n_positions, int32_t slot) {
  CHECK(n_positions % kPageTokens == 0);
  slots_.add_ref(slot);
  cache.snapshots.push_back({n_positions, slot});
}

void CacheBook::drop_snapshots(SequenceCache& cache) {
  for (const StateSnapshot& snapshot : cache.snapshots) slots_.release(snapshot.slot);
  cache.snapshots.clear();
}

void CacheBook::trim(SequenceCache& cache, int n_positions) {
  const auto wanted = static_cast<size_t>(pages_for(n_positions));
  while (cache.pages.size() > wanted) {
    pages_.release(cache.pages.back());
    cache.pages.pop_back();
  }
}

SequenceCache CacheBook::fork(const SequenceCache& cache, int n_positions) {
  SequenceCache copy;
  copy.pages.assign(cache.pages.begin(), cache.pages.begin() + pages_for(n_positions));
  copy.state = cache.state;
  for (int32_t page : copy.pages) pages_.add_ref(page);
  if (copy.state >= 0) slots_.add_ref(copy.state);
  return copy;
}

void CacheBook::remember(std::span<const int32_t> tokens, int n_positions, SequenceCache& cache) {
  const auto n_full = static_cast<size_t>(n_positions / kPageTokens);
  tree_.insert(tokens, std::span(cache.pages).first(n_full), cache.snapshots);
}

void CacheBook::release(SequenceCache& cache) {
  trim(cache, 0);
  drop_snapshots(cache);
  set_state(cache, -1);
  if (cache.spare >= 0) release_slot(std::exchange(cache.spare, -1));
}

void CacheBook::forget() {
  while (tree_.evict_page()) {
  }
  while (tree_.evict_snapshot()) {
  }
}

int32_t CacheBook::take_page() {
  int32_t page = pages_.take();
  while (page < 0 && tree_.evict_page()) page = pages_.take();
  return page;
}

}  // namespace sluice
