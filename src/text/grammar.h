// Context-free grammars over bytes: how they are built, and the automaton they become.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

/// A set of code points: ascending, disjoint ranges, both ends included.
using CharSet = std::vector<std::pair<char32_t, char32_t>>;
CharSet normalized(CharSet set);
CharSet complement(const CharSet& set);  // without surrogates

/// One nondeterministic automaton per rule. A rule is entered at its start and left at its
/// accepting node, which has no edges. From every node the accepting node can be reached, and no
/// rule can call itself before a byte was read.
struct Grammar {
  enum class EdgeKind : uint8_t { kBytes, kEmpty, kCall };
  struct Edge {
    EdgeKind kind = EdgeKind::kEmpty;
    uint8_t low = 0, high = 0;  // kBytes
    int32_t rule = 0;           // kCall: `target` is where the rule returns to
    int32_t target = 0;
  };
  struct Rule {
    std::string name;
    int32_t start = 0;
  };
  /// The nodes between `count` calls of a rule that is not empty; from the `min`th on an empty edge
  /// leaves to `exit`.
  struct Chain {
    int32_t first_node = 0;
    int32_t min = 0, count = 0;
    bool endless = false;  // the last node loops
    int32_t rule = 0, exit = 0;
  };

  std::vector<Edge> edges;
  std::vector<uint32_t> first_edge;  // per node and one more
  std::vector<uint8_t> accepting;    // per node
  std::vector<Rule> rules;
  std::vector<Chain> chains;  // in order of nodes
  /// Any text may come before the first of this, behind which the grammar begins; empty: none.
  std::string marker;
  int32_t start = 0;  // node

  int32_t n_nodes() const { return static_cast<int32_t>(accepting.size()); }
};

using Expr = int32_t;
using RuleId = int32_t;

/// Makes grammars of expressions. `what` starts every error message. Everything is bounded: beyond
/// 250,000 states kInvalidInput is thrown.
class GrammarBuilder {
 public:
  explicit GrammarBuilder(std::string what) : what_(std::move(what)) {}
  const std::string& what() const { return what_; }
  void set_what(std::string what) { what_ = std::move(what); }

  Expr empty() { return sequence({}); }
  Expr literal(std::string bytes) { return literals({std::move(bytes)}); }
  Expr literals(std::vector<std::string> choices);  // none: matches nothing
  Expr characters(CharSet set);                     // one character of it, in UTF-8
  Expr sequence(std::vector<Expr> parts);
  Expr choice(std::vector<Expr> choices);
  Expr optional(Expr body) { return repeat(body, 0, 1); }
  Expr repeat(Expr body, int min, int max);  // max < 0: no limit
  /// What the labels on a way from state 0 to state 1 of `n_states` match one after another.
  struct Transition {
    int32_t from = 0, to = 0;
    Expr label = 0;
  };
  Expr automaton(int n_states, const std::vector<Transition>& transitions);
  Expr call(RuleId rule);
  RuleId declare(std::string name);
  void define(RuleId rule, Expr body);
  /// A rule with this body and no use for its name.
  RuleId rule(std::string name, Expr body);

  /// Throws kInvalidInput if nothing matches, if the shortest match is longer than 100,000 bytes,
  /// or if a rule is left-recursive.
  Grammar build(RuleId start);

 private:
  enum class Kind : uint8_t {
    kLiterals,
    kCharacters,
    kSequence,
    kChoice,
    kRepeat,
    kAutomaton,
    kCall
  };
  struct Node {
    Kind kind = Kind::kSequence;
    int min = 0, max = 0;       // kRepeat; kAutomaton: max states
    RuleId rule = 0;            // kCall
    std::vector<Expr> parts{};  // kSequence, kChoice, kRepeat, kAutomaton: the labels
    std::vector<std::pair<int32_t, int32_t>> arcs{};  // kAutomaton: from and to, per label
    std::vector<std::string> texts{};
    CharSet set{};
    int64_t n_states = 1;   // about, when compiled
    bool nullable = false;  // may match nothing
  };
  struct RuleBody {
    std::string name;
    Expr body = -1;
  };
  struct Arc {
    int32_t source;
    Grammar::Edge edge;
  };

  Expr add(Node node);
  [[noreturn]] void refuse_nodes() const;
  int32_t new_node();
  void edge(int32_t from, Grammar::Edge edge);
  void compile(Expr expr, int32_t from, int32_t to);
  void compile_literals(const std::vector<std::string>& texts, int32_t from, int32_t to);
  void compile_characters(const CharSet& set, int32_t from, int32_t to);
  void compile_sequence(const std::vector<Expr>& parts, int32_t from, int32_t to);
  void compile_repeat(const Node& node, int32_t from, int32_t to);
  void compile_automaton(const Node& node, int32_t from, int32_t to);

  std::string what_;
  std::vector<Node> exprs_;
  std::vector<RuleBody> rules_;
  std::vector<Arc> arcs_;
  std::vector<Grammar::Chain> chains_;
  int32_t n_nodes_ = 0;
  int64_t n_automaton_states_ = 0;
};

/// Drops what cannot reach an end, and refuses what build() refuses.
void check_and_trim(Grammar& grammar, const std::string& what);

}  // namespace sluice
