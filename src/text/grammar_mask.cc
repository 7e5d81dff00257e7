#include "text/grammar_mask.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "text/vocabulary_walk.h"

namespace sluice {
namespace {

using State = GrammarMachine::State;

constexpr size_t kMaxCachedBytes = 8u << 20;  // of masks, and of chains
constexpr size_t kMaxMachineItems = 100'000;  // then its memory is given back
constexpr int64_t kWarmUpWork = 3'000'000;    // about 50 ms

/// A state of the machine, or, if negative, of the free text before it.
State free_state(int32_t n_read) { return -1 - n_read; }
int32_t n_read(State state) { return -1 - state; }

/// kDead if the grammar refuses the text.
State read(GrammarMachine& machine, const FreeText* free_text, State state, std::string_view text) {
  for (const char byte : text) {
    if (state < 0) {
      const int32_t n = free_text->next(n_read(state), byte);
      state = n == free_text->marker_size() ? machine.start() : free_state(n);
    } else {
      state = machine.step(state, static_cast<uint8_t>(byte));
      if (state == GrammarMachine::kDead) break;
    }
  }
  return state;
}

/// One text in the making.
class GrammarConstraint : public TokenConstraint {
 public:
  explicit GrammarConstraint(ConstraintPtr compiled)
      : compiled_(std::move(compiled)),
        machine_(std::make_unique<GrammarMachine>(compiled_->grammar())),
        states_{compiled_->free_text() ? free_state(0) : machine_->start()} {}

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
  static constexpr size_t kMaxRollback = 256;

  void forget();
  void add(const std::shared_ptr<const NodeMask>& mask, State after, std::vector<uint32_t>& bits);
  const Joined& joined(const std::shared_ptr<const NodeMask>& mask, State after);

  ConstraintPtr compiled_;
  std::unique_ptr<GrammarMachine> machine_;
  size_t kept_items_ = 0;      // by forget()
  std::vector<State> states_;  // after the latest tokens; kEnd after an end token
  std::array<Joined, kJoined> joined_;
};

void GrammarConstraint::allowed(std::vector<uint32_t>& bits) {
  if (states_.back() < 0) {
    bits = compiled_->free_mask(n_read(states_.back()));
    return;
  }
  const VocabularyTrie& vocabulary = compiled_->vocabulary();
  bits.assign(vocabulary.n_words(), 0);
  machine_->begin_work();
  std::vector<GrammarMachine::Item> items;  // the state's, and those they return to
  const auto reach = [&](State state) {
    for (const GrammarMachine::Item& item : machine_->items(state)) {
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
    walk(vocabulary, *machine_, exit, after, [&](uint32_t node, State) {
      for (const int32_t token : vocabulary.tokens(node)) set_bit(entry.bits, token);
    });
  }
  entry.mask = mask;
  entry.after = after;
  return entry;
}

/// Long texts take no more memory than short ones.
void GrammarConstraint::forget() {
  if (states_.size() > kMaxRollback + 1)
    states_.erase(states_.begin(), states_.end() - kMaxRollback - 1);
  const auto first = std::find_if(states_.begin(), states_.end(), [](State s) { return s >= 0; });
  machine_ = machine_->with_only({first, states_.end()});
  kept_items_ = machine_->n_stored();
  joined_.fill({});
}

bool GrammarConstraint::accept(Token token) {
  const VocabularyTrie& vocabulary = compiled_->vocabulary();
  if (machine_->n_stored() > 2 * kept_items_ + kMaxMachineItems) forget();
  State state = states_.back();
  machine_->begin_work();
  if (vocabulary.is_end(token)) {
    if (state >= 0 && !machine_->complete(state)) return false;
    states_.push_back(GrammarMachine::kEnd);
    return true;
  }
  const std::string_view text = vocabulary.token_text(token);
  if (text.empty() && state >= 0) return false;
  state = read(*machine_, compiled_->free_text(), state, text);
  if (state == GrammarMachine::kDead) return false;
  states_.push_back(state);
  return true;
}

}  // namespace

CompiledConstraint::CompiledConstraint(Grammar grammar, VocabularyPtr vocabulary)
    : grammar_(std::move(grammar)), vocabulary_(std::move(vocabulary)) {
  if (!grammar_.marker.empty()) make_free_masks(grammar_.marker);
  warm_up();
}

const ChainMasks* CompiledConstraint::chain(int32_t node) const {
  auto chain =
      std::upper_bound(grammar_.chains.begin(), grammar_.chains.end(), node,
                       [](int32_t value, const Grammar::Chain& c) { return value < c.first_node; });
  if (chain == grammar_.chains.begin()) return nullptr;
  --chain;
  if (node - chain->first_node > chain->count) return nullptr;
  const auto found = chains_.find(chain->first_node);
  if (found != chains_.end()) return &found->second;
  ChainMasks masks(*vocabulary_, machine(), grammar_, *chain);
  work_ += machine_->work();
  if (chain_bytes_ + masks.bytes() > kMaxCachedBytes) {
    chains_.clear();
    chain_bytes_ = 0;
  }
  chain_bytes_ += masks.bytes();
  return &chains_.emplace(chain->first_node, std::move(masks)).first->second;
}

std::shared_ptr<const NodeMask> CompiledConstraint::mask(int32_t node) const {
  const std::lock_guard lock(mutex_);
  const ChainMasks* const chain = this->chain(node);
  const ChainMasks::Place place = chain ? chain->place(node) : ChainMasks::Place{};
  auto key = static_cast<uint64_t>(node);
  if (chain) {
    key = static_cast<uint64_t>(chain->first_node() + 1) << 32 |
          static_cast<uint64_t>(place.left) << 16 | static_cast<uint64_t>(place.required);
  }
  if (const auto found = masks_.find(key); found != masks_.end()) return found->second;
  const bool read = chain && chain->known();
  auto mask = std::make_shared<const NodeMask>(read ? chain->mask(place) : compute(node));
  const size_t n_words = mask->tokens.size() + mask->bits.size() + mask->exits.size();
  work_ += static_cast<int64_t>(n_words);
  if (const size_t bytes = 128 + 4 * n_words; mask_bytes_ + bytes <= kMaxCachedBytes) {
    mask_bytes_ += bytes;
    masks_.emplace(key, mask);
  }
  return mask;
}

GrammarMachine& CompiledConstraint::machine() const {
  if (!machine_ || machine_->n_stored() > kMaxMachineItems) {
    machine_ = std::make_unique<GrammarMachine>(grammar_);
  }
  machine_->begin_work();
  return *machine_;
}

NodeMask CompiledConstraint::compute(int32_t node) const {
  GrammarMachine& machine = this->machine();
  NodeMask mask;
  const State start = machine.at(node);
  mask.may_end = machine.complete(start);
  const std::span<const VocabularyTrie::Node> nodes = vocabulary_->nodes();
  walk(*vocabulary_, machine, 0, start, [&](uint32_t at, State state) {
    const std::span<const int32_t> tokens = vocabulary_->tokens(at);
    mask.tokens.insert(mask.tokens.end(), tokens.begin(), tokens.end());
    if (nodes[at].end > at + 1 && machine.complete(state)) mask.exits.push_back(at);
  });
  work_ += machine.work();
  if (mask.tokens.size() > vocabulary_->n_words()) {
    mask.bits.resize(vocabulary_->n_words());
    for (const int32_t token : mask.tokens) set_bit(mask.bits, token);
    mask.tokens = {};
  }
  return mask;
}

/// Masks that many tokens take part in cost milliseconds: as many as possible are made beforehand,
/// on the caller's thread instead of the engine's.
void CompiledConstraint::warm_up() const {
  for (const Grammar::Edge& edge : grammar_.edges) {
    if (work_ > kWarmUpWork) return;
    if (edge.kind != Grammar::EdgeKind::kEmpty) mask(edge.target);
  }
}

void CompiledConstraint::make_free_masks(const std::string& marker) {
  free_text_.emplace(marker);
  free_masks_.assign(marker.size(), std::vector<uint32_t>(vocabulary_->n_words(), ~0u));
  GrammarMachine& machine = this->machine();
  for (int32_t token = 0; token < vocabulary_->vocab_size(); ++token) {
    const std::string_view text = vocabulary_->token_text(token);
    const size_t last = text.find(marker.back());
    if (last == text.npos || last + 1 == text.size()) continue;  // goes on behind no marker
    for (size_t n = 0; n < marker.size(); ++n) {
      if (read(machine, &*free_text_, free_state(int32_t(n)), text) != GrammarMachine::kDead)
        continue;
      free_masks_[n][size_t(token) / 32] &= ~(1u << (token % 32));
    }
  }
}

std::unique_ptr<TokenConstraint> start_constraint(ConstraintPtr compiled) {
  return std::make_unique<GrammarConstraint>(std::move(compiled));
}

}  // namespace sluice
