// Reads bytes with a grammar: a pushdown automaton that follows all possible parses at once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "text/grammar.h"

namespace sluice {

/// A state is a set of (node, what follows when the node's rule ends), where what follows is again
/// such a set. Equal sets are stored once, nodes of a set are distinct, so common prefixes and
/// suffixes of parses are shared (a graph-structured stack) and reading is polynomial for any
/// grammar. Nesting deeper than 1,000 rules is not followed.
class GrammarMachine {
 public:
  using State = int32_t;
  static constexpr State kDead = 0;  // the empty set
  static constexpr State kEnd = 1;   // nothing may follow
  static constexpr int32_t kEndNode = -1;
  struct Item {
    int32_t node = kEndNode;
    State after = kDead;
    bool operator==(const Item&) const = default;
  };

  /// `grammar` must outlive the machine.
  explicit GrammarMachine(const Grammar& grammar);

  State start() { return at(grammar_.start); }
  /// The state in which only `node` is possible, and its rule is the outermost.
  State at(int32_t node);
  /// kDead if the byte cannot come next. Throws kResource beyond 10 million steps since
  /// begin_work(), or 2 million stored items.
  State step(State state, uint8_t byte);
  /// True if the text may end here.
  bool complete(State state) { return closure(state).complete; }
  std::span<const Item> items(State state) const {
    const Set& set = sets_[static_cast<size_t>(state)];
    return {items_.data() + set.first, set.size};
  }
  /// A machine that has nothing stored but `states`, which become its own.
  std::unique_ptr<GrammarMachine> with_only(std::span<State> states) const;
  void begin_work() { work_ = 0; }
  int64_t work() const { return work_; }
  size_t n_stored() const { return items_.size(); }

 private:
  struct Set {
    size_t first = 0;  // into items_
    uint32_t size = 0;
    uint32_t depth = 0;
  };
  /// A state after everything that needs no byte: the nodes that can read one.
  struct Closure {
    size_t first = 0;  // into readers_
    uint32_t size = 0;
    bool known = false;
    bool complete = false;
  };
  struct Transition {
    uint64_t key = ~uint64_t{0};
    State target = kDead;
  };

  void spend(size_t steps);
  State intern(std::span<const Item> sorted);
  State merge(State a, State b);
  const Closure& closure(State state);
  void reach(int32_t node, State after);
  void expand(const Item& item);
  /// Adds to the set that is being collected.
  bool collect(int32_t node, State after);
  void clear_collected();
  State compute_step(State state, uint8_t byte);

  const Grammar& grammar_;
  std::vector<Item> items_;
  std::vector<Set> sets_;
  std::unordered_multimap<uint64_t, State> by_hash_;
  std::unordered_map<uint64_t, State> merged_;
  std::vector<Item> readers_;
  std::vector<Closure> closures_;        // per state
  std::vector<Transition> transitions_;  // a cache: one entry per slot
  // What is being collected: nodes, and per node what follows (kDead: not in it).
  std::vector<int32_t> collected_;
  std::vector<State> after_;
  std::vector<int32_t> pending_;
  bool complete_ = false;
  int64_t work_ = 0;
};

}  // namespace sluice
