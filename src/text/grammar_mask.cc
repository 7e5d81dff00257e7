#include "text/grammar_mask.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace sluice {
namespace {

using State = GrammarMachine::State;

constexpr size_t kMaxCachedBytes = 32u << 20;
constexpr size_t kMaxMachineItems = 500'000;  // then its memory is given back
constexpr int64_t kWarmUpWork = 3'000'000;    // about 50 ms

void set_bit(std::vector<uint32_t>& bits, int32_t token) {
  bits[static_cast<size_t>(token) / 32] |= 1u << (token % 32);
}

/// Reads the subtree below `root` from `state`; calls f(tree node, state) wherever the grammar is
/// alive.
template <typename F>
void walk(const VocabularyTrie& vocabulary, GrammarMachine& machine, uint32_t root, State state,
          F&& f) {
  const std::span<const VocabularyTrie::Node> nodes = vocabulary.nodes();
  const uint16_t base = nodes[root].depth;
  std::vector<State> states{state};  // per depth below the root
  for (uint32_t i = root + 1; i < nodes[root].end;) {
    const auto depth = static_cast<size_t>(nodes[i].depth - base);
    const State next = machine.step(states[depth - 1], nodes[i].byte);
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

/// One text in the making.
class GrammarConstraint : public TokenConstraint {
 public:
  explicit GrammarConstraint(ConstraintPtr compiled)
      : compiled_(std::move(compiled)), machine_(compiled_->grammar()), states_{machine_.start()} {}

  void allowed(std::vector<uint32_t>& bits) override;
  bool accept(Token token) override;
  void rollback(int n) override {
    CHECK(n >= 0 && static_cast<size_t>(n) < states_.size());
    states_.resize(states_.size() - static_cast<size_t>(n));
  }

 private:
  /// What a node's mask becomes where the node's rule returns to `after`. Texts stay in the same
  /// few places for long, so these are kept.
  struct Joined {
    std::shared_ptr<const NodeMask> mask;
    State after = GrammarMachine::kDead;
    std::vector<uint32_t> bits;
  };
  static constexpr size_t kJoined = 16;

  void add(const std::shared_ptr<const NodeMask>& mask, State after, std::vector<uint32_t>& bits);
  const Joined& joined(const std::shared_ptr<const NodeMask>& mask, State after);

  ConstraintPtr compiled_;
  GrammarMachine machine_;
  std::vector<State> states_;  // after every token; kEnd after an end token
  std::array<Joined, kJoined> joined_;
};

void GrammarConstraint::allowed(std::vector<uint32_t>& bits) {
  const VocabularyTrie& vocabulary = compiled_->vocabulary();
  bits.assign(vocabulary.n_words(), 0);
  machine_.begin_work();
  std::vector<GrammarMachine::Item> items;  // the state's, and those they return to
  const auto reach = [&](State state) {
    for (const GrammarMachine::Item& item : machine_.items(state)) {
      if (std::find(items.begin(), items.end(), item) == items.end()) items.push_back(item);
    }
  };
  reach(states_.back());
  for (size_t i = 0; i < items.size(); ++i) {
    const GrammarMachine::Item item = items[i];
    if (item.node == GrammarMachine::kEndNode) {
      for (const int32_t end : vocabulary.end_tokens()) set_bit(bits, end);
      continue;
    }
    const std::shared_ptr<const NodeMask> mask = compiled_->mask(item.node);
    add(mask, item.after, bits);
    if (mask->may_end) reach(item.after);
  }
  if (std::all_of(bits.begin(), bits.end(), [](uint32_t word) { return word == 0; })) {
    throw Error(ErrorCode::kResource, "grammar: no token of the vocabulary can continue the text");
  }
}

void GrammarConstraint::add(const std::shared_ptr<const NodeMask>& mask, State after,
                            std::vector<uint32_t>& bits) {
  const bool has_exits = !mask->exits.empty() && after != GrammarMachine::kEnd;
  const std::vector<uint32_t>& from = has_exits ? joined(mask, after).bits : mask->bits;
  for (size_t w = 0; w < from.size(); ++w) bits[w] |= from[w];
  for (const int32_t token : mask->tokens) set_bit(bits, token);
}

const GrammarConstraint::Joined& GrammarConstraint::joined(
    const std::shared_ptr<const NodeMask>& mask, State after) {
  const size_t hash = reinterpret_cast<uintptr_t>(mask.get()) / 64 + static_cast<size_t>(after);
  Joined& entry = joined_[hash % kJoined];
  if (entry.mask == mask && entry.after == after) return entry;
  const VocabularyTrie& vocabulary = compiled_->vocabulary();
  entry.mask = nullptr;  // until it is whole: walking may throw
  entry.bits = mask->bits;
  entry.bits.resize(vocabulary.n_words());
  for (const uint32_t exit : mask->exits) {
    walk(vocabulary, machine_, exit, after, [&](uint32_t node, State) {
      for (const int32_t token : vocabulary.tokens(node)) set_bit(entry.bits, token);
    });
  }
  entry.mask = mask;
  entry.after = after;
  return entry;
}

bool GrammarConstraint::accept(Token token) {
  const VocabularyTrie& vocabulary = compiled_->vocabulary();
  State state = states_.back();
  machine_.begin_work();
  if (vocabulary.is_end(token)) {
    if (!machine_.complete(state)) return false;
    states_.push_back(GrammarMachine::kEnd);
    return true;
  }
  const std::string_view text = vocabulary.token_text(token);
  if (text.empty()) return false;
  for (const char byte : text) {
    state = machine_.step(state, static_cast<uint8_t>(byte));
    if (state == GrammarMachine::kDead) return false;
  }
  states_.push_back(state);
  return true;
}

}  // namespace

CompiledConstraint::CompiledConstraint(Grammar grammar, VocabularyPtr vocabulary)
    : grammar_(std::move(grammar)), vocabulary_(std::move(vocabulary)) {
  warm_up();
}

/// Far from both ends of a chain of repetitions no token can tell one node from the next.
int32_t CompiledConstraint::representative(int32_t node) const {
  auto chain =
      std::upper_bound(grammar_.chains.begin(), grammar_.chains.end(), node,
                       [](int32_t value, const Grammar::Chain& c) { return value < c.first_node; });
  if (chain == grammar_.chains.begin()) return node;
  --chain;
  const int32_t at = node - chain->first_node, reach = vocabulary_->max_token_bytes();
  if (at > chain->count) return node;
  if (at + reach < chain->min) return chain->first_node;
  const bool ends_far_away = !chain->endless && chain->count - at > reach;
  return at >= chain->min && ends_far_away ? chain->first_node + chain->min : node;
}

std::shared_ptr<const NodeMask> CompiledConstraint::mask(int32_t node) const {
  node = representative(node);
  const std::lock_guard lock(mutex_);
  if (const auto found = masks_.find(node); found != masks_.end()) return found->second;
  std::shared_ptr<const NodeMask> mask = compute(node);
  const size_t bytes = 128 + 4 * (mask->tokens.size() + mask->bits.size() + mask->exits.size());
  if (cached_bytes_ + bytes <= kMaxCachedBytes) {
    cached_bytes_ += bytes;
    masks_.emplace(node, mask);
  }
  return mask;
}

std::shared_ptr<const NodeMask> CompiledConstraint::compute(int32_t node) const {
  if (!machine_ || machine_->n_stored() > kMaxMachineItems) {
    machine_ = std::make_unique<GrammarMachine>(grammar_);
  }
  machine_->begin_work();
  auto mask = std::make_shared<NodeMask>();
  const State start = machine_->at(node);
  mask->may_end = machine_->complete(start);
  const std::span<const VocabularyTrie::Node> nodes = vocabulary_->nodes();
  walk(*vocabulary_, *machine_, 0, start, [&](uint32_t at, State state) {
    const std::span<const int32_t> tokens = vocabulary_->tokens(at);
    mask->tokens.insert(mask->tokens.end(), tokens.begin(), tokens.end());
    if (nodes[at].end > at + 1 && machine_->complete(state)) mask->exits.push_back(at);
  });
  if (mask->tokens.size() > vocabulary_->n_words()) {
    mask->bits.resize(vocabulary_->n_words());
    for (const int32_t token : mask->tokens) set_bit(mask->bits, token);
    mask->tokens = {};
  }
  return mask;
}

/// Masks that many tokens take part in cost milliseconds: as many as possible are made beforehand,
/// on the caller's thread instead of the engine's.
void CompiledConstraint::warm_up() const {
  int64_t work = 0;
  for (const Grammar::Edge& edge : grammar_.edges) {
    if (work > kWarmUpWork) return;
    if (edge.kind == Grammar::EdgeKind::kEmpty || masks_.contains(representative(edge.target))) {
      continue;
    }
    mask(edge.target);
    work += machine_->work();
  }
}

std::unique_ptr<TokenConstraint> start_constraint(ConstraintPtr compiled) {
  return std::make_unique<GrammarConstraint>(std::move(compiled));
}

}  // namespace sluice
