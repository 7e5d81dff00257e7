// Reading all tokens at once: a grammar along the tree of a vocabulary.
#pragma once

#include <vector>

#include "text/grammar_machine.h"
#include "text/vocabulary_trie.h"

namespace sluice {

/// Reads the subtree below `root` from `state`; calls f(tree node, state) wherever the grammar is
/// alive.
template <typename F>
void walk(const VocabularyTrie& vocabulary, GrammarMachine& machine, uint32_t root,
          GrammarMachine::State state, F&& f) {
  const std::span<const VocabularyTrie::Node> nodes = vocabulary.nodes();
  const uint16_t base = nodes[root].depth;
  std::vector<GrammarMachine::State> states{state};  // per depth below the root
  for (uint32_t i = root + 1; i < nodes[root].end;) {
    const auto depth = static_cast<size_t>(nodes[i].depth - base);
    const GrammarMachine::State next = machine.step(states[depth - 1], nodes[i].byte);
    if (next == GrammarMachine::kDead) {
      i = nodes[i].end;
      continue;
    }
    states.resize(depth);
    states.push_back(next);
    f(i, next);
    ++i;
  }
}

}  // namespace sluice
