#include "text/grammar.h"

#include <algorithm>

#include "base/error.h"

namespace sluice {
namespace {

constexpr int32_t kMaxNodes = 250'000;
constexpr size_t kMaxExprs = 500'000;
constexpr size_t kMaxArcs = 2'000'000;
// A larger body of a repetition becomes a rule, so that it is not copied.
constexpr int64_t kMaxCopied = 64;
constexpr int kMinChain = 8;  // shorter chains are not worth remembering

struct ByteRange {
  uint8_t low, high;
};
using ByteRanges = std::vector<ByteRange>;

/// Calls f(sequence of byte ranges) for UTF-8 forms that together are [low, high].
template <typename F>
void for_each_utf8_form(char32_t low, char32_t high, F&& f) {
  for (const char32_t limit : {0x7Fu, 0x7FFu, 0xFFFFu}) {
    if (low <= limit && high > limit) {
      for_each_utf8_form(low, limit, f);
      for_each_utf8_form(limit + 1, high, f);
      return;
    }
  }
  const int n_tail = high <= 0x7F ? 0 : high <= 0x7FF ? 1 : high <= 0xFFFF ? 2 : 3;
  // Split until every byte's range is independent of the others.
  for (int i = 1; i <= n_tail; ++i) {
    const char32_t mask = (1u << (6 * i)) - 1;
    if ((low & ~mask) == (high & ~mask)) continue;
    if ((low & mask) != 0) {
      for_each_utf8_form(low, low | mask, f);
      for_each_utf8_form((low | mask) + 1, high, f);
      return;
    }
    if ((high & mask) != mask) {
      for_each_utf8_form(low, (high & ~mask) - 1, f);
      for_each_utf8_form(high & ~mask, high, f);
      return;
    }
  }
  static constexpr uint8_t kLead[] = {0x00, 0xC0, 0xE0, 0xF0};
  ByteRanges bytes;
  for (int i = n_tail; i >= 0; --i) {
    const uint32_t lead = i == n_tail ? kLead[n_tail] : 0x80;
    const uint32_t mask = i == n_tail ? 0x7Fu : 0x3Fu;
    bytes.push_back({static_cast<uint8_t>(lead | ((low >> (6 * i)) & mask)),
                     static_cast<uint8_t>(lead | ((high >> (6 * i)) & mask))});
  }
  f(bytes);
}

}  // namespace

CharSet normalized(CharSet set) {
  std::sort(set.begin(), set.end());
  CharSet result;
  for (const auto& [low, high] : set) {
    if (!result.empty() && low <= result.back().second + 1) {
      result.back().second = std::max(result.back().second, high);
    } else {
      result.emplace_back(low, high);
    }
  }
  return result;
}

CharSet complement(const CharSet& set) {
  CharSet all = set;
  all.emplace_back(0xD800, 0xDFFF);
  CharSet result;
  char32_t next = 0;
  for (const auto& [low, high] : normalized(std::move(all))) {
    if (low > next) result.emplace_back(next, low - 1);
    next = high + 1;
  }
  if (next <= 0x10FFFF) result.emplace_back(next, 0x10FFFF);
  return result;
}

Expr GrammarBuilder::add(Node node) {
  if (exprs_.size() >= kMaxExprs) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected at most {} parts, got more", what_,
                kMaxExprs);
  }
  exprs_.push_back(std::move(node));
  return static_cast<Expr>(exprs_.size() - 1);
}

Expr GrammarBuilder::literals(std::vector<std::string> choices) {
  std::sort(choices.begin(), choices.end());
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  Node node{.kind = Kind::kLiterals};
  for (const std::string& text : choices) node.n_states += static_cast<int64_t>(text.size());
  node.nullable = !choices.empty() && choices.front().empty();
  node.texts = std::move(choices);
  return add(std::move(node));
}

Expr GrammarBuilder::characters(CharSet set) {
  Node node{.kind = Kind::kCharacters};
  node.set = normalized(std::move(set));
  node.n_states = 1 + 4 * static_cast<int64_t>(node.set.size());
  return add(std::move(node));
}

Expr GrammarBuilder::sequence(std::vector<Expr> parts) {
  if (parts.size() == 1) return parts.front();
  Node node{.kind = Kind::kSequence, .nullable = true};
  for (const Expr part : parts) {
    node.n_states += exprs_[static_cast<size_t>(part)].n_states;
    node.nullable = node.nullable && exprs_[static_cast<size_t>(part)].nullable;
  }
  node.parts = std::move(parts);
  return add(std::move(node));
}

Expr GrammarBuilder::choice(std::vector<Expr> choices) {
  if (choices.size() == 1) return choices.front();
  Node node{.kind = Kind::kChoice};
  for (const Expr part : choices) {
    node.n_states += exprs_[static_cast<size_t>(part)].n_states;
    node.nullable = node.nullable || exprs_[static_cast<size_t>(part)].nullable;
  }
  node.parts = std::move(choices);
  return add(std::move(node));
}

Expr GrammarBuilder::repeat(Expr body, int min, int max) {
  if (max > kMaxNodes || min > kMaxNodes) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected at most {} repetitions, got {}", what_,
                kMaxNodes, std::max(min, max));
  }
  if (min == 1 && max == 1) return body;
  const int64_t copies = std::max(max < 0 ? min + 1 : max, 1);
  const int64_t n_body = exprs_[static_cast<size_t>(body)].n_states;
  const bool is_call = exprs_[static_cast<size_t>(body)].kind == Kind::kCall;
  if (!is_call && (copies >= kMinChain || (copies > 1 && n_body * copies > kMaxCopied))) {
    body = call(rule("", body));
  }
  Node node{.kind = Kind::kRepeat, .min = min, .max = max, .parts = {body}};
  node.n_states = copies * exprs_[static_cast<size_t>(body)].n_states + copies;
  node.nullable = min == 0 || exprs_[static_cast<size_t>(body)].nullable;
  return add(std::move(node));
}

Expr GrammarBuilder::automaton(int n_states, const std::vector<Transition>& transitions) {
  // Counted here already: what makes automata is to stop before it has made too many.
  n_automaton_states_ += n_states;
  if (n_automaton_states_ > kMaxNodes) refuse_nodes();
  Node node{.kind = Kind::kAutomaton, .max = n_states};
  node.n_states = n_states;
  for (const auto& [from, to, label] : transitions) {
    node.n_states += exprs_[static_cast<size_t>(label)].n_states;
    node.nullable = node.nullable || exprs_[static_cast<size_t>(label)].nullable;
    node.parts.push_back(label);
    node.arcs.emplace_back(from, to);
  }
  return add(std::move(node));
}

Expr GrammarBuilder::call(RuleId rule) {
  const Expr body = rules_[static_cast<size_t>(rule)].body;
  // A rule that is not yet defined may turn out to match nothing.
  const bool nullable = body < 0 || exprs_[static_cast<size_t>(body)].nullable;
  return add({.kind = Kind::kCall, .rule = rule, .nullable = nullable});
}

RuleId GrammarBuilder::declare(std::string name) {
  rules_.push_back({std::move(name), -1});
  return static_cast<RuleId>(rules_.size() - 1);
}

void GrammarBuilder::define(RuleId rule, Expr body) {
  rules_[static_cast<size_t>(rule)].body = body;
}

RuleId GrammarBuilder::rule(std::string name, Expr body) {
  const RuleId id = declare(std::move(name));
  define(id, body);
  return id;
}

void GrammarBuilder::refuse_nodes() const {
  throw Error(ErrorCode::kInvalidInput, "{}: expected a grammar of at most {} states, got more",
              what_, kMaxNodes);
}

int32_t GrammarBuilder::new_node() {
  if (n_nodes_ >= kMaxNodes) refuse_nodes();
  return n_nodes_++;
}

void GrammarBuilder::edge(int32_t from, Grammar::Edge edge) {
  if (arcs_.size() >= kMaxArcs) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected a grammar of at most {} edges, got more",
                what_, kMaxArcs);
  }
  arcs_.push_back({from, edge});
}

void GrammarBuilder::compile(Expr expr, int32_t from, int32_t to) {
  const Node& node = exprs_[static_cast<size_t>(expr)];
  switch (node.kind) {
    case Kind::kLiterals:
      return compile_literals(node.texts, from, to);
    case Kind::kCharacters:
      return compile_characters(node.set, from, to);
    case Kind::kSequence:
      return compile_sequence(node.parts, from, to);
    case Kind::kChoice:
      for (const Expr part : node.parts) compile(part, from, to);
      return;
    case Kind::kRepeat:
      return compile_repeat(node, from, to);
    case Kind::kAutomaton:
      return compile_automaton(node, from, to);
    case Kind::kCall:
      return edge(from, {.kind = Grammar::EdgeKind::kCall, .rule = node.rule, .target = to});
  }
}

/// As a prefix tree, so that thousands of choices cost no more than one per byte.
void GrammarBuilder::compile_literals(const std::vector<std::string>& texts, int32_t from,
                                      int32_t to) {
  std::vector<int32_t> path{from};
  std::string_view previous;
  for (const std::string& text : texts) {
    if (text.empty()) {
      edge(from, {.target = to});
      continue;
    }
    const auto same = static_cast<size_t>(
        std::mismatch(text.begin(), text.end(), previous.begin(), previous.end()).first -
        text.begin());
    path.resize(std::min(path.size(), same + 1));
    for (size_t i = path.size() - 1; i < text.size(); ++i) {
      const auto byte = static_cast<uint8_t>(text[i]);
      // A text's last byte leads to `to`, not into the tree: a longer text has its own way.
      const int32_t next = i + 1 == text.size() ? to : new_node();
      edge(path.back(), {Grammar::EdgeKind::kBytes, byte, byte, 0, next});
      if (i + 1 < text.size()) path.push_back(next);
    }
    previous = text;
  }
}

void GrammarBuilder::compile_characters(const CharSet& set, int32_t from, int32_t to) {
  std::map<std::string, int32_t> tails;  // what must follow -> the node it follows on
  const auto node_before = [&](const ByteRanges& bytes, size_t i, auto&& self) -> int32_t {
    if (i == bytes.size()) return to;
    std::string key;
    for (size_t k = i; k < bytes.size(); ++k) {
      key += {static_cast<char>(bytes[k].low), static_cast<char>(bytes[k].high)};
    }
    const auto found = tails.find(key);
    if (found != tails.end()) return found->second;
    const int32_t node = new_node();
    tails.emplace(std::move(key), node);
    edge(node,
         {Grammar::EdgeKind::kBytes, bytes[i].low, bytes[i].high, 0, self(bytes, i + 1, self)});
    return node;
  };
  for (const auto& [low, high] : set) {
    for_each_utf8_form(low, high, [&](const ByteRanges& bytes) {
      edge(from, {Grammar::EdgeKind::kBytes, bytes[0].low, bytes[0].high, 0,
                  node_before(bytes, 1, node_before)});
    });
  }
}

void GrammarBuilder::compile_sequence(const std::vector<Expr>& parts, int32_t from, int32_t to) {
  if (parts.empty()) return edge(from, {.target = to});
  for (size_t i = 0; i < parts.size(); ++i) {
    const int32_t next = i + 1 == parts.size() ? to : new_node();
    compile(parts[i], from, next);
    from = next;
  }
}

void GrammarBuilder::compile_repeat(const Node& node, int32_t from, int32_t to) {
  const Expr body = node.parts[0];
  const Node& repeated = exprs_[static_cast<size_t>(body)];
  const bool endless = node.max < 0;
  const int min = node.min, count = endless ? node.min : node.max;
  if (!endless && count < min) return;  // matches nothing
  const int32_t first = n_nodes_;
  for (int i = 0; i <= count; ++i) new_node();
  if (!repeated.nullable && count >= kMinChain) {
    CHECK(repeated.kind == Kind::kCall);
    chains_.push_back({first, min, count, endless, repeated.rule, to});
  }
  edge(from, {.target = first});
  for (int i = 0; i < count; ++i) compile(body, first + i, first + i + 1);
  if (endless) compile(body, first + count, first + count);
  for (int i = min; i <= count; ++i) edge(first + i, {.target = to});
}

/// Has states of its own: edges that lead back to the start must not reach what else starts there.
void GrammarBuilder::compile_automaton(const Node& node, int32_t from, int32_t to) {
  const int32_t first = n_nodes_;
  for (int i = 0; i < node.max; ++i) new_node();
  edge(from, {.target = first});
  for (size_t i = 0; i < node.parts.size(); ++i) {
    compile(node.parts[i], first + node.arcs[i].first, first + node.arcs[i].second);
  }
  edge(first + 1, {.target = to});
}

Grammar GrammarBuilder::build(RuleId start) {
  Grammar grammar;
  arcs_.clear();
  chains_.clear();
  n_nodes_ = 0;
  std::vector<int32_t> accepting;
  // Compiling a rule never adds one.
  for (const RuleBody& rule : rules_) {
    const int32_t from = new_node(), to = new_node();
    grammar.rules.push_back({rule.name, from});
    accepting.push_back(to);
    CHECK(rule.body >= 0);
    compile(rule.body, from, to);
  }
  grammar.start = grammar.rules[static_cast<size_t>(start)].start;
  grammar.accepting.resize(static_cast<size_t>(n_nodes_));
  for (const int32_t node : accepting) grammar.accepting[static_cast<size_t>(node)] = 1;
  std::stable_sort(arcs_.begin(), arcs_.end(),
                   [](const Arc& a, const Arc& b) { return a.source < b.source; });
  grammar.first_edge.resize(static_cast<size_t>(n_nodes_) + 1);
  for (const Arc& arc : arcs_) {
    ++grammar.first_edge[static_cast<size_t>(arc.source) + 1];
    grammar.edges.push_back(arc.edge);
  }
  for (size_t i = 0; i + 1 < grammar.first_edge.size(); ++i) {
    grammar.first_edge[i + 1] += grammar.first_edge[i];
  }
  std::sort(chains_.begin(), chains_.end(),
            [](const auto& a, const auto& b) { return a.first_node < b.first_node; });
  grammar.chains = std::move(chains_);
  check_and_trim(grammar, what_);
  return grammar;
}

}  // namespace sluice
