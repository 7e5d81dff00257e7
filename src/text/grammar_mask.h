// Which tokens a grammar allows: masks per node, computed once and shared, joined per state.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "text/chain_mask.h"
#include "text/constraint.h"
#include "text/free_text.h"
#include "text/grammar_machine.h"

namespace sluice {

class CompiledConstraint {
 public:
  CompiledConstraint(Grammar grammar, VocabularyPtr vocabulary);

  const Grammar& grammar() const { return grammar_; }
  const VocabularyTrie& vocabulary() const { return *vocabulary_; }
  /// Thread-safe. Throws kResource if the grammar is too ambiguous to follow.
  std::shared_ptr<const NodeMask> mask(int32_t node) const;
  /// What comes before the grammar's marker; nullptr: nothing.
  const FreeText* free_text() const { return free_text_ ? &*free_text_ : nullptr; }
  /// The tokens that may follow free text which ends with `n_read` bytes of the marker: all but
  /// those that end the marker and go on in a way the grammar refuses.
  const std::vector<uint32_t>& free_mask(int32_t n_read) const {
    return free_masks_[static_cast<size_t>(n_read)];
  }

 private:
  /// The chain that the node is one of; nullptr: none.
  const ChainMasks* chain(int32_t node) const;
  NodeMask compute(int32_t node) const;
  GrammarMachine& machine() const;
  void warm_up() const;
  void make_free_masks(const std::string& marker);

  Grammar grammar_;
  VocabularyPtr vocabulary_;
  std::optional<FreeText> free_text_;
  std::vector<std::vector<uint32_t>> free_masks_;
  mutable std::mutex mutex_;  // guards what is below
  mutable std::unique_ptr<GrammarMachine> machine_;
  mutable std::unordered_map<uint64_t, std::shared_ptr<const NodeMask>> masks_;
  mutable std::unordered_map<int32_t, ChainMasks> chains_;  // by first node
  mutable size_t mask_bytes_ = 0, chain_bytes_ = 0;
  mutable int64_t work_ = 0;  // steps that masks have taken
};

}  // namespace sluice
