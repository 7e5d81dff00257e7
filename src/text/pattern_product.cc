#include "text/pattern_product.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/automaton_explorer.h"

namespace sluice {
namespace {

/// Follows the patterns' automata, whose rules never call themselves, with the calls written out.
class Product {
 public:
  Product(GrammarBuilder& builder, std::span<const TextPattern> patterns, int min, int max,
          int64_t& steps)
      : builder_(builder),
        where_(patterns.front().options.what),
        min_(min),
        max_(max),
        steps_(steps),
        explorer_(where_, "patterns and lengths that make an automaton") {
    for (const TextPattern& pattern : patterns) {
      GrammarBuilder alone(pattern.options.what);
      RegexOptions options = pattern.options;
      options.json_string = false;
      const Expr body = regex_grammar(alone, pattern.text, options);
      const Grammar& grammar = patterns_.emplace_back(alone.build(alone.rule("pattern", body)));
      spend(grammar.n_nodes() + static_cast<int64_t>(grammar.edges.size()));
    }
    State start;
    for (const Grammar& pattern : patterns_) start.stacks.push_back({pattern.start});
    explorer_.go(Explorer::kStart, start, builder_.empty());
    explorer_.explore([this](const State& state, int32_t id) { expand(state, id); });
  }

  bool empty() const { return !explorer_.ends(); }
  Expr build() const { return explorer_.build(builder_); }

 private:
  struct State {
    // Of each pattern: where calls return to, and last the node.
    std::vector<std::vector<int32_t>> stacks;
    int length = 0;  // characters so far; without a limit, never more than the minimum
    auto operator<=>(const State&) const = default;
  };
  using Explorer = AutomatonExplorer<State>;

  void spend(int64_t steps) {
    steps_ -= steps;
    if (steps_ < 0) {
      throw Error(ErrorCode::kUnsupported,
                  "{}: expected smaller patterns where several of them, or lengths, must hold, got "
                  "larger ones",
                  where_);
    }
  }

  static bool at_end(const Grammar& pattern, const std::vector<int32_t>& stack) {
    return stack.size() == 1 && pattern.accepting[static_cast<size_t>(stack.back())];
  }
  static std::span<const Grammar::Edge> edges(const Grammar& pattern, int32_t node) {
    const auto n = static_cast<size_t>(node);
    return std::span(pattern.edges)
        .subspan(pattern.first_edge[n], pattern.first_edge[n + 1] - pattern.first_edge[n]);
  }

  void expand(const State& state, int32_t id) {
    bool all_end = state.length >= min_;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      all_end = all_end && at_end(patterns_[i], state.stacks[i]);
      go_without_text(state, id, i);
    }
    if (all_end) explorer_.end(id, builder_.empty());
    meet(state, id, 0, 0x00, 0xFF);
  }

  /// One pattern goes on by itself.
  void go_without_text(const State& state, int32_t id, size_t i) {
    const Grammar& pattern = patterns_[i];
    const std::vector<int32_t>& stack = state.stacks[i];
    State next = state;
    if (pattern.accepting[static_cast<size_t>(stack.back())] && stack.size() > 1) {
      next.stacks[i].pop_back();
      explorer_.go(id, next, builder_.empty());
    }
    for (const Grammar::Edge& edge : edges(pattern, stack.back())) {
      if (edge.kind == Grammar::EdgeKind::kBytes) continue;
      next.stacks[i] = stack;
      next.stacks[i].back() = edge.target;
      if (edge.kind == Grammar::EdgeKind::kCall) {
        next.stacks[i].push_back(pattern.rules[static_cast<size_t>(edge.rule)].start);
      }
      explorer_.go(id, next, builder_.empty());
    }
  }

  /// All patterns from number `i` on read a byte of low..high.
  void meet(const State& state, int32_t id, size_t i, uint8_t low, uint8_t high) {
    if (i == patterns_.size()) return read(id, state, low, high);
    for (const Grammar::Edge& edge : edges(patterns_[i], state.stacks[i].back())) {
      spend(1);
      if (edge.kind != Grammar::EdgeKind::kBytes) continue;
      const uint8_t first = std::max(low, edge.low), last = std::min(high, edge.high);
      if (first > last) continue;
      State next = state;
      next.stacks[i].back() = edge.target;
      meet(next, id, i + 1, first, last);
    }
  }

  /// Every byte but those that continue a character starts one. An edge has only one kind.
  void read(int32_t id, State next, uint8_t low, uint8_t high) {
    const bool continues = low >= 0x80 && low < 0xC0;
    if (!continues) {
      if (max_ >= 0 && next.length == max_) return;
      if (max_ >= 0 || next.length < min_) ++next.length;
    }
    explorer_.go(id, next, label(low, high));
  }

  Expr label(uint8_t low, uint8_t high) {
    const auto [entry, is_new] = labels_.try_emplace({low, high}, 0);
    if (!is_new) return entry->second;
    if (high < 0x80) return entry->second = json_characters(builder_, {{low, high}});
    std::vector<std::string> bytes;
    for (int byte = low; byte <= high; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
    return entry->second = builder_.literals(std::move(bytes));
  }

  GrammarBuilder& builder_;
  const std::string where_;
  const int min_, max_;
  int64_t& steps_;
  std::vector<Grammar> patterns_;
  Explorer explorer_;
  std::map<std::pair<uint8_t, uint8_t>, Expr> labels_;
};

}  // namespace

Expr pattern_product(GrammarBuilder& builder, std::span<const TextPattern> patterns, int min,
                     int max, int64_t& steps) {
  return Product(builder, patterns, min, max, steps).build();
}

bool patterns_meet(std::span<const TextPattern> patterns, int64_t& steps) {
  GrammarBuilder unused(patterns.front().options.what);
  return !Product(unused, patterns, 0, -1, steps).empty();
}

}  // namespace sluice
