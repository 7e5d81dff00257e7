#include <algorithm>
#include <limits>
#include <queue>

#include "base/error.h"
#include "text/grammar.h"

namespace sluice {
namespace {

using EdgeKind = Grammar::EdgeKind;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kMaxShortest = 100'000;  // bytes

/// Per node the bytes of the shortest way to its rule's end: Dijkstra's algorithm where a call
/// costs what the called rule costs (Knuth 1977).
class ShortestMatches {
 public:
  explicit ShortestMatches(const Grammar& grammar)
      : grammar_(grammar),
        cost_(static_cast<size_t>(grammar.n_nodes()), kNever),
        into_(cost_.size()),
        rule_of_start_(cost_.size(), -1),
        callers_(grammar.rules.size()) {
    for (size_t r = 0; r < grammar.rules.size(); ++r) {
      rule_of_start_[static_cast<size_t>(grammar.rules[r].start)] = static_cast<int32_t>(r);
    }
    for (int32_t node = 0; node < grammar.n_nodes(); ++node) {
      for (uint32_t e = grammar.first_edge[size_t(node)]; e < grammar.first_edge[size_t(node) + 1];
           ++e) {
        const Grammar::Edge& edge = grammar.edges[e];
        into_[static_cast<size_t>(edge.target)].push_back({node, e});
        if (edge.kind == EdgeKind::kCall) {
          callers_[static_cast<size_t>(edge.rule)].push_back({node, e});
        }
      }
    }
    run();
  }

  const std::vector<int64_t>& cost() const { return cost_; }

 private:
  struct Use {
    int32_t source;
    uint32_t edge;
  };

  void run() {
    for (int32_t node = 0; node < grammar_.n_nodes(); ++node) {
      if (grammar_.accepting[static_cast<size_t>(node)]) queue_.push({0, node});
    }
    while (!queue_.empty()) {
      const auto [cost, node] = queue_.top();
      queue_.pop();
      if (cost_[static_cast<size_t>(node)] != kNever) continue;
      cost_[static_cast<size_t>(node)] = cost;
      for (const Use& use : into_[static_cast<size_t>(node)]) relax(use);
      const int32_t rule = rule_of_start_[static_cast<size_t>(node)];
      if (rule < 0) continue;
      for (const Use& use : callers_[static_cast<size_t>(rule)]) relax(use);
    }
  }

  void relax(const Use& use) {
    const Grammar::Edge& edge = grammar_.edges[use.edge];
    int64_t cost = cost_[static_cast<size_t>(edge.target)];
    if (cost == kNever) return;
    if (edge.kind == EdgeKind::kBytes) ++cost;
    if (edge.kind == EdgeKind::kCall) {
      const int32_t start = grammar_.rules[static_cast<size_t>(edge.rule)].start;
      const int64_t body = cost_[static_cast<size_t>(start)];
      if (body == kNever) return;
      cost = std::min(cost + body, kNever / 4);
    }
    queue_.push({cost, use.source});
  }

  using Entry = std::pair<int64_t, int32_t>;
  const Grammar& grammar_;
  std::vector<int64_t> cost_;
  std::vector<std::vector<Use>> into_;
  std::vector<int32_t> rule_of_start_;
  std::vector<std::vector<Use>> callers_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

/// The rules that `rule` can call before it has read a byte.
std::vector<int32_t> first_calls(const Grammar& grammar, const std::vector<int64_t>& cost,
                                 int32_t rule, std::vector<int32_t>& seen) {
  std::vector<int32_t> calls, nodes{grammar.rules[static_cast<size_t>(rule)].start};
  seen[static_cast<size_t>(nodes[0])] = rule;
  while (!nodes.empty()) {
    const auto node = static_cast<size_t>(nodes.back());
    nodes.pop_back();
    for (uint32_t e = grammar.first_edge[node]; e < grammar.first_edge[node + 1]; ++e) {
      const Grammar::Edge& edge = grammar.edges[e];
      if (edge.kind == EdgeKind::kBytes) continue;
      if (edge.kind == EdgeKind::kCall) {
        calls.push_back(edge.rule);
        const int32_t start = grammar.rules[static_cast<size_t>(edge.rule)].start;
        if (cost[static_cast<size_t>(start)] != 0) continue;
      }
      if (seen[static_cast<size_t>(edge.target)] == rule) continue;
      seen[static_cast<size_t>(edge.target)] = rule;
      nodes.push_back(edge.target);
    }
  }
  return calls;
}

void refuse_left_recursion(const Grammar& grammar, const std::vector<int64_t>& cost,
                           const std::string& what) {
  const size_t n_rules = grammar.rules.size();
  std::vector<std::vector<int32_t>> calls(n_rules);
  std::vector<int32_t> seen(cost.size(), -1), n_callers(n_rules, 0), ready;
  for (size_t r = 0; r < n_rules; ++r) {
    calls[r] = first_calls(grammar, cost, static_cast<int32_t>(r), seen);
    for (const int32_t called : calls[r]) ++n_callers[static_cast<size_t>(called)];
  }
  for (size_t r = 0; r < n_rules; ++r) {
    if (n_callers[r] == 0) ready.push_back(static_cast<int32_t>(r));
  }
  size_t n_sorted = 0;  // rules that are in no cycle
  for (; !ready.empty(); ++n_sorted) {
    const auto rule = static_cast<size_t>(ready.back());
    ready.pop_back();
    for (const int32_t called : calls[rule]) {
      if (--n_callers[static_cast<size_t>(called)] == 0) ready.push_back(called);
    }
  }
  if (n_sorted == n_rules) return;
  for (size_t r = 0; r < n_rules; ++r) {
    if (n_callers[r] == 0 || grammar.rules[r].name.empty()) continue;
    throw Error(ErrorCode::kInvalidInput,
                "{}: rule {}: expected a rule that starts with something else, got left recursion",
                what, grammar.rules[r].name);
  }
  throw Error(ErrorCode::kInvalidInput, "{}: expected no left recursion, got some", what);
}

}  // namespace

void check_and_trim(Grammar& grammar, const std::string& what) {
  const ShortestMatches matches(grammar);
  const std::vector<int64_t>& cost = matches.cost();
  const int64_t shortest = cost[static_cast<size_t>(grammar.start)];
  if (shortest == kNever) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected something to match, got a contradiction",
                what);
  }
  if (shortest > kMaxShortest) {
    throw Error(ErrorCode::kInvalidInput,
                "{}: expected a shortest match of at most {} bytes, got more", what, kMaxShortest);
  }
  std::vector<Grammar::Edge> edges;
  std::vector<uint32_t> first_edge{0};
  for (size_t node = 0; node < cost.size(); ++node) {
    for (uint32_t e = grammar.first_edge[node]; e < grammar.first_edge[node + 1]; ++e) {
      const Grammar::Edge& edge = grammar.edges[e];
      bool useful = cost[static_cast<size_t>(edge.target)] != kNever;
      if (edge.kind == EdgeKind::kCall) {
        const int32_t start = grammar.rules[static_cast<size_t>(edge.rule)].start;
        useful = useful && cost[static_cast<size_t>(start)] != kNever;
      }
      if (useful) edges.push_back(edge);
    }
    first_edge.push_back(static_cast<uint32_t>(edges.size()));
  }
  grammar.edges = std::move(edges);
  grammar.first_edge = std::move(first_edge);
  refuse_left_recursion(grammar, cost, what);
}

}  // namespace sluice
