// The masks of a chain of repetitions, all from one reading of the vocabulary.
//
// From a node with r repetitions to come a token fits inside the chain if the repetitions it takes
// part in are at most r, and it may leave the chain after as many as are allowed there. Tokens
// sorted by that number answer for every node, where reading the vocabulary once per node costs
// milliseconds each. What can be split into repetitions in many ways is left to that.
#pragma once

#include <cstdint>
#include <vector>

#include "text/grammar_machine.h"
#include "text/vocabulary_trie.h"

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

class ChainMasks {
 public:
  /// `machine` is that of `grammar`, which `chain` is of. Throws as it does.
  ChainMasks(const VocabularyTrie& vocabulary, GrammarMachine& machine, const Grammar& grammar,
             const Grammar::Chain& chain);

  /// What tells the nodes of a chain apart: how many repetitions may come and how many must, both
  /// cut where no token is long enough to tell.
  struct Place {
    int32_t left = 0, required = 0;
  };
  Place place(int32_t node) const;
  /// False: there are too many ways; mask() may not be called.
  bool known() const { return !levels_.empty(); }
  int32_t first_node() const { return chain_.first_node; }
  NodeMask mask(Place place) const;
  size_t bytes() const { return bytes_; }

 private:
  /// What begins after, or takes, a number of repetitions.
  struct Level {
    std::vector<int32_t> inside;   // tokens that take this many repetitions, and no fewer
    std::vector<int32_t> after;    // tokens that leave the chain after this many
    std::vector<uint32_t> exits;   // tree nodes where such a token leaves the rule, too
    std::vector<uint32_t> bounds;  // tree nodes where this many repetitions end
  };

  bool read_inside(GrammarMachine& machine, int32_t rule_start);
  void read_after(GrammarMachine& machine);

  const VocabularyTrie& vocabulary_;
  Grammar::Chain chain_;
  std::vector<Level> levels_;   // 0: before the first repetition
  std::vector<uint32_t> bits_;  // all that are inside
  bool ends_ = false;           // the rule may end where the chain is left
  size_t bytes_ = 0;
};

void set_bit(std::vector<uint32_t>& bits, int32_t token);

}  // namespace sluice
