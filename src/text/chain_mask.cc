#include "text/chain_mask.h"

#include <algorithm>

#include "text/vocabulary_walk.h"

namespace sluice {
namespace {

constexpr size_t kMaxWays = 2;  // on average over the tree's nodes

void sort_unique(std::vector<uint32_t>& nodes) {
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
}

void clear_bit(std::vector<uint32_t>& bits, int32_t token) {
  bits[static_cast<size_t>(token) / 32] &= ~(1u << (token % 32));
}

bool has_bit(const std::vector<uint32_t>& bits, int32_t token) {
  return (bits[static_cast<size_t>(token) / 32] >> (token % 32) & 1) != 0;
}

}  // namespace

void set_bit(std::vector<uint32_t>& bits, int32_t token) {
  bits[static_cast<size_t>(token) / 32] |= 1u << (token % 32);
}

ChainMasks::ChainMasks(const VocabularyTrie& vocabulary, GrammarMachine& machine,
                       const Grammar& grammar, const Grammar::Chain& chain)
    : vocabulary_(vocabulary), chain_(chain), bits_(vocabulary.n_words()) {
  if (!read_inside(machine, grammar.rules[static_cast<size_t>(chain.rule)].start)) {
    levels_ = {};
    bits_ = {};
    return;
  }
  read_after(machine);
  bytes_ = 4 * bits_.size();
  for (Level& level : levels_) {
    level.bounds = {};  // only the reading needs them
    bytes_ += sizeof level + 4 * (level.inside.size() + level.after.size() + level.exits.size());
  }
}

/// False if the bounds of repetitions are many more than in a text that splits in one way.
bool ChainMasks::read_inside(GrammarMachine& machine, int32_t rule_start) {
  const GrammarMachine::State start = machine.at(rule_start);
  size_t n_bounds = 0;
  levels_.emplace_back().bounds = {0};
  while (!levels_.back().bounds.empty()) {
    Level next;
    for (const uint32_t bound : levels_.back().bounds) {
      walk(vocabulary_, machine, bound, start, [&](uint32_t node, GrammarMachine::State state) {
        for (const int32_t token : vocabulary_.tokens(node)) {
          if (has_bit(bits_, token)) continue;
          set_bit(bits_, token);
          next.inside.push_back(token);
        }
        if (machine.complete(state)) next.bounds.push_back(node);
      });
    }
    sort_unique(next.bounds);
    n_bounds += next.bounds.size();
    levels_.push_back(std::move(next));
    if (n_bounds > kMaxWays * vocabulary_.size()) return false;
  }
  return true;
}

void ChainMasks::read_after(GrammarMachine& machine) {
  const GrammarMachine::State start = machine.at(chain_.exit);
  const std::span<const VocabularyTrie::Node> nodes = vocabulary_.nodes();
  const auto has_children = [&](uint32_t node) { return nodes[node].end > node + 1; };
  ends_ = machine.complete(start);
  for (Level& level : levels_) {
    for (const uint32_t bound : level.bounds) {
      if (ends_ && bound != 0 && has_children(bound)) level.exits.push_back(bound);
      walk(vocabulary_, machine, bound, start, [&](uint32_t node, GrammarMachine::State state) {
        const std::span<const int32_t> tokens = vocabulary_.tokens(node);
        level.after.insert(level.after.end(), tokens.begin(), tokens.end());
        if (has_children(node) && machine.complete(state)) level.exits.push_back(node);
      });
    }
    sort_unique(level.exits);
  }
}

ChainMasks::Place ChainMasks::place(int32_t node) const {
  const int32_t at = node - chain_.first_node;
  const auto n_levels =
      known() ? static_cast<int32_t>(levels_.size()) : vocabulary_.max_token_bytes() + 1;
  return {chain_.endless ? n_levels : std::min(chain_.count - at, n_levels),
          std::clamp(chain_.min - at, 0, n_levels)};
}

NodeMask ChainMasks::mask(Place place) const {
  NodeMask mask;
  mask.bits = bits_;
  mask.may_end = ends_ && place.required == 0;
  const auto left = static_cast<size_t>(place.left);
  for (size_t k = left + 1; k < levels_.size(); ++k) {
    for (const int32_t token : levels_[k].inside) clear_bit(mask.bits, token);
  }
  for (auto k = static_cast<size_t>(place.required); k <= left && k < levels_.size(); ++k) {
    for (const int32_t token : levels_[k].after) set_bit(mask.bits, token);
    mask.exits.insert(mask.exits.end(), levels_[k].exits.begin(), levels_[k].exits.end());
  }
  sort_unique(mask.exits);
  return mask;
}

}  // namespace sluice
