// Automata that are made state by state, as grammars.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/grammar.h"

namespace sluice {

/// Numbers the states of an automaton as transitions to them are found, each of which gets its turn
/// once. `State` is ordered by <.
template <typename State>
class AutomatonExplorer {
 public:
  static constexpr int32_t kStart = 0, kEnd = 1;

  /// `expected` completes the error of what takes more than kMaxStates states.
  AutomatonExplorer(std::string where, std::string expected)
      : where_(std::move(where)), expected_(std::move(expected)) {}

  void go(int32_t from, const State& to, Expr label) {
    const auto [entry, is_new] = ids_.try_emplace(to, kFirst + static_cast<int32_t>(ids_.size()));
    if (is_new) pending_.emplace_back(to, entry->second);
    transitions_.push_back({from, entry->second, label});
    if (ids_.size() > kMaxStates || transitions_.size() > kMaxTransitions) {
      throw Error(ErrorCode::kUnsupported, "{}: expected {} of at most {} states, got more", where_,
                  expected_, kMaxStates);
    }
  }
  /// The automaton may end here; `empty` is the builder's empty text.
  void end(int32_t from, Expr empty) {
    transitions_.push_back({from, kEnd, empty});
    ends_ = true;
  }

  /// Calls `expand(state, id)`, which goes on from there, for every state that is found.
  template <typename Expand>
  void explore(const Expand& expand) {
    while (!pending_.empty()) {
      const auto [state, id] = std::move(pending_.front());
      pending_.pop_front();
      expand(state, id);
    }
  }

  /// Whether any state that was found may end.
  bool ends() const { return ends_; }
  Expr build(GrammarBuilder& builder) const {
    return builder.automaton(kFirst + static_cast<int>(ids_.size()), transitions_);
  }

 private:
  static constexpr int32_t kFirst = 2;
  static constexpr size_t kMaxStates = 20'000;
  static constexpr size_t kMaxTransitions = 250'000;

  const std::string where_, expected_;
  std::map<State, int32_t> ids_;
  std::deque<std::pair<State, int32_t>> pending_;
  std::vector<GrammarBuilder::Transition> transitions_;
  bool ends_ = false;
};

}  // namespace sluice
