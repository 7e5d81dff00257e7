// Which tokens a grammar allows: masks per node, computed once and shared, joined per state.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "text/constraint.h"
#include "text/grammar_machine.h"

namespace sluice {

/// The tokens that one node's rule allows, whatever it was called from.
struct NodeMask {
  std::vector<int32_t> tokens;  // if few, else
  std::vector<uint32_t> bits;   // a bit per token
  /// Nodes of the vocabulary tree at which the rule may end inside a token: what follows there
  /// depends on the caller.
  std::vector<uint32_t> exits;
  bool may_end = false;  // the rule may end before any token
};

class CompiledConstraint {
 public:
  CompiledConstraint(Grammar grammar, VocabularyPtr vocabulary);

  const Grammar& grammar() const { return grammar_; }
  const VocabularyTrie& vocabulary() const { return *vocabulary_; }
  /// Thread-safe. Throws kResource if the grammar is too ambiguous to follow.
  std::shared_ptr<const NodeMask> mask(int32_t node) const;

 private:
  int32_t representative(int32_t node) const;
  std::shared_ptr<const NodeMask> compute(int32_t node) const;
  void warm_up() const;

  Grammar grammar_;
  VocabularyPtr vocabulary_;
  mutable std::mutex mutex_;  // guards what is below
  mutable std::unique_ptr<GrammarMachine> machine_;
  mutable std::unordered_map<int32_t, std::shared_ptr<const NodeMask>> masks_;
  mutable size_t cached_bytes_ = 0;
};

}  // namespace sluice
