#include "text/pattern_length.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "base/error.h"

namespace sluice {
namespace {

constexpr size_t kMaxStates = 20'000;
constexpr size_t kMaxTransitions = 200'000;

/// Follows the pattern's automaton, whose rules never call themselves, with the calls written out.
class Product {
 public:
  Product(GrammarBuilder& builder, const Grammar& pattern, int min, int max,
          const std::string& where)
      : builder_(builder), pattern_(pattern), min_(min), max_(max), where_(where) {}

  Expr make() {
    go(kStart, {{pattern_.start}, 0}, builder_.empty());
    while (!pending_.empty()) {
      const auto [state, id] = std::move(pending_.front());
      pending_.pop_front();
      expand(state, id);
    }
    return builder_.automaton(kFirst + static_cast<int>(ids_.size()), transitions_);
  }

 private:
  static constexpr int32_t kStart = 0, kEnd = 1, kFirst = 2;
  struct State {
    std::vector<int32_t> nodes;  // where calls return to, and last the node
    int length = 0;              // characters so far; without a limit, never more than the minimum
    auto operator<=>(const State&) const = default;
  };

  void go(int32_t from, const State& to, Expr label) {
    const auto [entry, is_new] = ids_.try_emplace(to, kFirst + static_cast<int32_t>(ids_.size()));
    if (is_new) pending_.emplace_back(to, entry->second);
    transitions_.push_back({from, entry->second, label});
    if (ids_.size() > kMaxStates || transitions_.size() > kMaxTransitions) {
      throw Error(ErrorCode::kUnsupported,
                  "{}: expected a pattern and lengths of at most {} states together, got more",
                  where_, kMaxStates);
    }
  }

  void expand(const State& state, int32_t id) {
    const auto node = static_cast<size_t>(state.nodes.back());
    if (pattern_.accepting[node]) {
      if (state.nodes.size() > 1) {
        State back = state;
        back.nodes.pop_back();
        return go(id, back, builder_.empty());
      }
      if (state.length >= min_) transitions_.push_back({id, kEnd, builder_.empty()});
      return;
    }
    for (uint32_t e = pattern_.first_edge[node]; e < pattern_.first_edge[node + 1]; ++e) {
      const Grammar::Edge& edge = pattern_.edges[e];
      State next = state;
      next.nodes.back() = edge.target;
      if (edge.kind == Grammar::EdgeKind::kEmpty) {
        go(id, next, builder_.empty());
      } else if (edge.kind == Grammar::EdgeKind::kCall) {
        next.nodes.push_back(pattern_.rules[static_cast<size_t>(edge.rule)].start);
        go(id, next, builder_.empty());
      } else {
        read(id, std::move(next), edge);
      }
    }
  }

  /// Every byte but those that continue a character starts one. An edge has only one kind.
  void read(int32_t id, State next, const Grammar::Edge& edge) {
    const bool continues = edge.low >= 0x80 && edge.low < 0xC0;
    if (!continues) {
      if (max_ >= 0 && next.length == max_) return;
      if (max_ >= 0 || next.length < min_) ++next.length;
    }
    go(id, next, label(edge.low, edge.high));
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
  const Grammar& pattern_;
  const int min_, max_;
  const std::string& where_;
  std::map<State, int32_t> ids_;
  std::deque<std::pair<State, int32_t>> pending_;
  std::vector<GrammarBuilder::Transition> transitions_;
  std::map<std::pair<uint8_t, uint8_t>, Expr> labels_;
};

}  // namespace

Expr pattern_of_length(GrammarBuilder& builder, std::string_view pattern, RegexOptions options,
                       int min, int max, int64_t& steps) {
  GrammarBuilder alone(options.what);
  options.json_string = false;
  const Expr body = regex_grammar(alone, pattern, options);
  const Grammar grammar = alone.build(alone.rule("pattern", body));
  steps -= grammar.n_nodes() + static_cast<int64_t>(grammar.edges.size());
  if (steps < 0) {
    throw Error(ErrorCode::kUnsupported,
                "{}: expected smaller patterns beside lengths, got larger ones", options.what);
  }
  return Product(builder, grammar, min, max, options.what).make();
}

}  // namespace sluice
