#include "text/grammar_machine.h"

#include <algorithm>

#include "base/error.h"

namespace sluice {
namespace {

constexpr uint32_t kMaxDepth = 1000;
constexpr int64_t kMaxWork = 10'000'000;  // about a second
constexpr size_t kMaxStored = 2'000'000;  // items, 8 bytes each
constexpr size_t kTransitions = 1 << 13;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

}  // namespace

GrammarMachine::GrammarMachine(const Grammar& grammar)
    : grammar_(grammar),
      transitions_(kTransitions),
      after_(static_cast<size_t>(grammar.n_nodes()), kDead) {
  intern({});
  const Item end;
  intern({&end, 1});
}

void GrammarMachine::spend(size_t steps) {
  work_ += static_cast<int64_t>(steps);
  if (work_ > kMaxWork || items_.size() + readers_.size() > kMaxStored) {
    throw Error(ErrorCode::kResource, "grammar: too ambiguous to follow");
  }
}

GrammarMachine::State GrammarMachine::at(int32_t node) {
  const Item item{node, kEnd};
  return intern({&item, 1});
}

GrammarMachine::State GrammarMachine::intern(std::span<const Item> sorted) {
  spend(sorted.size());
  uint64_t hash = sorted.size();
  for (const Item& item : sorted) {
    hash = mix(hash, static_cast<uint64_t>(static_cast<uint32_t>(item.node)) << 32 |
                         static_cast<uint32_t>(item.after));
  }
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (std::ranges::equal(items(it->second), sorted)) return it->second;
  }
  Set set{items_.size(), static_cast<uint32_t>(sorted.size()), 0};
  for (const Item& item : sorted) {
    set.depth = std::max(set.depth, 1 + sets_[static_cast<size_t>(item.after)].depth);
  }
  items_.insert(items_.end(), sorted.begin(), sorted.end());
  const auto state = static_cast<State>(sets_.size());
  sets_.push_back(set);
  closures_.emplace_back();
  by_hash_.emplace(hash, state);
  return state;
}

std::unique_ptr<GrammarMachine> GrammarMachine::with_only(std::span<State> states) const {
  // What follows an item was stored before it.
  std::vector<State> moved(sets_.size(), kDead);  // kEnd: needed, until it is moved
  for (const State state : states) moved[static_cast<size_t>(state)] = kEnd;
  for (size_t s = moved.size(); s-- > 0;) {
    if (moved[s] == kDead) continue;
    for (const Item& item : items(static_cast<State>(s))) {
      moved[static_cast<size_t>(item.after)] = kEnd;
    }
  }
  auto machine = std::make_unique<GrammarMachine>(grammar_);
  moved[kDead] = kDead;
  moved[kEnd] = kEnd;
  for (size_t s = kEnd + 1; s < moved.size(); ++s) {
    if (moved[s] == kDead) continue;
    const std::span<const Item> set = items(static_cast<State>(s));
    std::vector<Item> copy(set.begin(), set.end());
    for (Item& item : copy) item.after = moved[static_cast<size_t>(item.after)];
    moved[s] = machine->intern(copy);
  }
  for (State& state : states) state = moved[static_cast<size_t>(state)];
  return machine;
}

/// The union of two sets; where both hold a node, what follows is the union of what follows.
GrammarMachine::State GrammarMachine::merge(State a, State b) {
  if (a == b || b == kDead) return a;
  if (a == kDead) return b;
  if (a > b) std::swap(a, b);
  const uint64_t key = static_cast<uint64_t>(a) << 32 | static_cast<uint32_t>(b);
  if (const auto found = merged_.find(key); found != merged_.end()) return found->second;
  std::vector<Item> result;
  for (size_t i = 0, k = 0;;) {
    // Merging deeper sets may move the storage: look it up every time.
    spend(1);
    const std::span<const Item> left = items(a), right = items(b);
    if (i == left.size() && k == right.size()) break;
    if (k == right.size() || (i < left.size() && left[i].node < right[k].node)) {
      result.push_back(left[i++]);
    } else if (i == left.size() || right[k].node < left[i].node) {
      result.push_back(right[k++]);
    } else {
      const Item x = left[i++], y = right[k++];
      result.push_back({x.node, merge(x.after, y.after)});
    }
  }
  const State state = intern(result);
  merged_.emplace(key, state);
  return state;
}

bool GrammarMachine::collect(int32_t node, State after) {
  State& slot = after_[static_cast<size_t>(node)];
  if (slot == kDead) {
    collected_.push_back(node);
    slot = after;
    return true;
  }
  const State both = merge(slot, after);
  if (both == slot) return false;
  slot = both;
  return true;
}

void GrammarMachine::clear_collected() {
  for (const int32_t node : collected_) after_[static_cast<size_t>(node)] = kDead;
  collected_.clear();
  pending_.clear();
}

void GrammarMachine::reach(int32_t node, State after) {
  if (node == kEndNode) {
    complete_ = true;
  } else if (collect(node, after)) {
    pending_.push_back(node);
  }
}

void GrammarMachine::expand(const Item& item) {
  if (grammar_.accepting[static_cast<size_t>(item.node)]) {
    for (size_t i = 0; i < items(item.after).size(); ++i) {
      const Item next = items(item.after)[i];
      reach(next.node, next.after);
    }
    return;
  }
  const uint32_t begin = grammar_.first_edge[static_cast<size_t>(item.node)];
  const uint32_t end = grammar_.first_edge[static_cast<size_t>(item.node) + 1];
  spend(end - begin + 1);
  for (uint32_t e = begin; e < end; ++e) {
    const Grammar::Edge& edge = grammar_.edges[e];
    if (edge.kind == Grammar::EdgeKind::kEmpty) reach(edge.target, item.after);
    if (edge.kind != Grammar::EdgeKind::kCall) continue;
    State after = item.after;
    // A call at the end of a rule needs no return: recursion to the right takes no space.
    if (!grammar_.accepting[static_cast<size_t>(edge.target)]) {
      if (sets_[static_cast<size_t>(after)].depth >= kMaxDepth) continue;
      const Item back{edge.target, after};
      after = intern({&back, 1});
    }
    reach(grammar_.rules[static_cast<size_t>(edge.rule)].start, after);
  }
}

const GrammarMachine::Closure& GrammarMachine::closure(State state) {
  if (closures_[static_cast<size_t>(state)].known) return closures_[static_cast<size_t>(state)];
  clear_collected();
  complete_ = false;
  for (size_t i = 0; i < items(state).size(); ++i) {
    const Item item = items(state)[i];
    reach(item.node, item.after);
  }
  while (!pending_.empty()) {
    const int32_t node = pending_.back();
    pending_.pop_back();
    expand({node, after_[static_cast<size_t>(node)]});
  }
  Closure closure{.first = readers_.size(), .known = true, .complete = complete_};
  for (const int32_t node : collected_) {
    const uint32_t begin = grammar_.first_edge[static_cast<size_t>(node)];
    const uint32_t end = grammar_.first_edge[static_cast<size_t>(node) + 1];
    const bool reads = std::any_of(
        grammar_.edges.begin() + begin, grammar_.edges.begin() + end,
        [](const Grammar::Edge& edge) { return edge.kind == Grammar::EdgeKind::kBytes; });
    if (reads) readers_.push_back({node, after_[static_cast<size_t>(node)]});
  }
  closure.size = static_cast<uint32_t>(readers_.size() - closure.first);
  return closures_[static_cast<size_t>(state)] = closure;
}

GrammarMachine::State GrammarMachine::step(State state, uint8_t byte) {
  const uint64_t key = static_cast<uint64_t>(state) << 8 | byte;
  Transition& cached = transitions_[mix(1, key) % kTransitions];
  ++work_;
  if (cached.key == key) return cached.target;
  const State target = compute_step(state, byte);
  cached = {key, target};
  return target;
}

GrammarMachine::State GrammarMachine::compute_step(State state, uint8_t byte) {
  const Closure from = closure(state);
  clear_collected();
  for (size_t r = from.first; r < from.first + from.size; ++r) {
    const Item reader = readers_[r];
    const uint32_t begin = grammar_.first_edge[static_cast<size_t>(reader.node)];
    const uint32_t end = grammar_.first_edge[static_cast<size_t>(reader.node) + 1];
    spend(end - begin);
    for (uint32_t e = begin; e < end; ++e) {
      const Grammar::Edge& edge = grammar_.edges[e];
      if (edge.kind == Grammar::EdgeKind::kBytes && edge.low <= byte && byte <= edge.high) {
        collect(edge.target, reader.after);
      }
    }
  }
  std::sort(collected_.begin(), collected_.end());
  std::vector<Item> next;
  for (const int32_t node : collected_) next.push_back({node, after_[static_cast<size_t>(node)]});
  return intern(next);
}

}  // namespace sluice
