// The merge loop of byte-pair encoding, shared by every way to rank pairs.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

namespace sluice {

struct Symbol {
  int32_t id = -1;
  uint32_t begin = 0;  // bytes in the piece
  uint32_t length = 0;
  int32_t previous = -1;
  int32_t next = -1;
};

struct Merge {
  double key = std::numeric_limits<double>::infinity();  // the lowest merges first
  int32_t id = -1;

  bool possible() const { return key < std::numeric_limits<double>::infinity(); }
};

/// Short pieces: scan for the lowest key, leftmost first. O(n^2), without allocations but `keys`.
template <typename Ranker>
void merge_short(std::vector<Symbol>& symbols, const Ranker& rank, std::vector<Merge>& merges) {
  merges.clear();
  for (size_t i = 0; i + 1 < symbols.size(); ++i)
    merges.push_back(rank(symbols[i], symbols[i + 1]));
  while (!merges.empty()) {
    size_t best = 0;
    for (size_t i = 1; i < merges.size(); ++i) {
      if (merges[i].key < merges[best].key) best = i;
    }
    if (!merges[best].possible()) return;
    symbols[best].id = merges[best].id;
    symbols[best].length += symbols[best + 1].length;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    merges.erase(merges.begin() + static_cast<std::ptrdiff_t>(best));
    if (best > 0) merges[best - 1] = rank(symbols[best - 1], symbols[best]);
    if (best < merges.size()) merges[best] = rank(symbols[best], symbols[best + 1]);
  }
}

/// Long pieces: a queue of candidates over a linked list. O(n log n).
template <typename Ranker>
void merge_long(std::vector<Symbol>& symbols, const Ranker& rank) {
  struct Candidate {
    double key;
    int32_t left;
    int32_t id;
    uint32_t length;  // of both symbols: tells whether they are still what they were
    bool operator<(const Candidate& other) const {
      return key != other.key ? key > other.key : left > other.left;
    }
  };
  const auto at = [&](int32_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };
  std::vector<Candidate> initial;
  const auto consider = [&](int32_t left, auto&& add) {
    if (left < 0 || at(left).next < 0) return;
    const Merge merge = rank(at(left), at(at(left).next));
    if (merge.possible()) {
      add(Candidate{merge.key, left, merge.id, at(left).length + at(at(left).next).length});
    }
  };
  const auto n = static_cast<int32_t>(symbols.size());
  for (int32_t i = 0; i < n; ++i) {
    at(i).previous = i - 1;
    at(i).next = i + 1 < n ? i + 1 : -1;
  }
  for (int32_t i = 0; i < n; ++i) consider(i, [&](Candidate c) { initial.push_back(c); });
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(initial));
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    Symbol& left = at(top.left);
    if (left.length == 0 || left.next < 0) continue;
    Symbol& right = at(left.next);
    if (left.length + right.length != top.length) continue;
    left.id = top.id;
    left.length = top.length;
    left.next = right.next;
    right.length = 0;
    if (left.next >= 0) at(left.next).previous = top.left;
    consider(left.previous, [&](Candidate c) { queue.push(c); });
    consider(top.left, [&](Candidate c) { queue.push(c); });
  }
  std::erase_if(symbols, [](const Symbol& s) { return s.length == 0; });
}

/// Merges neighbours until no pair has a rank. `rank(left, right)` gives a Merge.
template <typename Ranker>
void merge_symbols(std::vector<Symbol>& symbols, const Ranker& rank, std::vector<Merge>& scratch) {
  constexpr size_t kShort = 32;
  if (symbols.size() <= kShort) {
    merge_short(symbols, rank, scratch);
  } else {
    merge_long(symbols, rank);
  }
}

}  // namespace sluice
