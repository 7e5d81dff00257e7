// Recursive-descent parser of expressions and statements; jinja2's grammar.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace sluice::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, Symbols& symbols, int& line)
      : tokens_(std::move(tokens)), symbols_(symbols), line_(line) {}

  Body parse();

 private:
  enum class Conditional { kAllowed, kExcluded };

  // The token stream.
  const Token& current() const { return tokens_[position_]; }
  const Token& next_token() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  const Token& advance();
  bool is(TokenKind kind) const { return current().kind == kind; }
  bool is_operator(std::string_view text) const;
  bool is_name(std::string_view text) const;
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_operator(std::string_view text);
  void expect_name(std::string_view text);
  std::string expect_identifier();
  [[noreturn]] void fail_unexpected(std::string_view wanted);

  // Expressions, from loose to tight binding (jinja_parser.cc).
  ExpressionPtr parse_expression(Conditional conditional = Conditional::kAllowed);
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  bool parse_compare_operator(CompareOp& op);
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concat();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filters = true);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_number();
  ExpressionPtr parse_name_or_constant();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  /// One expression, or several separated by commas: a tuple.
  ExpressionPtr parse_tuple(Conditional conditional, bool in_parentheses,
                            std::string_view end_name = "");
  ExpressionPtr parse_postfix(ExpressionPtr node);
  ExpressionPtr parse_subscript(ExpressionPtr object);
  ExpressionPtr parse_bracketed(ExpressionPtr object);
  ExpressionPtr parse_filters_and_tests(ExpressionPtr node);
  ExpressionPtr parse_filters(ExpressionPtr node, bool first_without_pipe = false);
  ExpressionPtr parse_test(ExpressionPtr input);
  ExpressionPtr parse_call(ExpressionPtr callee);
  CallArguments parse_arguments(int& height);
  template <typename Node>
  ExpressionPtr parse_left(ExpressionPtr left, decltype(Node::op) op, ExpressionPtr right);
  const Builtin* resolve(const Builtin* builtin, std::string_view kind, std::string_view name);

  // Statements (jinja_parser_statements.cc).
  using EndNames = std::initializer_list<std::string_view>;
  Body parse_body(EndNames end_names);
  /// Past the end of the tag; up to one of `end_names`, which becomes the current token.
  Body parse_block(EndNames end_names);
  /// As parse_block, past the one end name.
  Body parse_block_to(std::string_view end_name);
  std::unique_ptr<Statement> parse_statement();
  std::unique_ptr<Statement> parse_output();
  std::unique_ptr<Statement> parse_if();
  std::unique_ptr<Statement> parse_for();
  std::unique_ptr<Statement> parse_set();
  ExpressionPtr block_text(int line) const;
  std::unique_ptr<Statement> parse_with();
  std::unique_ptr<Statement> parse_filter_block();
  std::unique_ptr<Statement> parse_macro();
  std::unique_ptr<Statement> parse_call_block();
  std::unique_ptr<Statement> parse_jump(Flow flow);
  std::unique_ptr<Statement> parse_generation();
  std::unique_ptr<Statement> parse_named_block();
  std::unique_ptr<Statement> parse_print();
  std::unique_ptr<Statement> parse_unsupported();
  Target parse_target(bool with_tuple, bool with_attribute = false);
  Target parse_single_target(bool with_attribute);
  void refuse_loop_variable(const Target& target) const;
  void parse_parameters(Callable& callable);
  void parse_callable_body(Callable& callable, std::string_view end_name);

  std::vector<Token> tokens_;
  size_t position_ = 0;
  Symbols& symbols_;
  int& line_;
  int depth_ = 0;                // open blocks
  int expression_depth_ = 0;     // open expressions
  int nested_loops_ = 0;         // open loops
  int loops_ = 0;                // open loops of the innermost macro
  bool is_conditional_ = false;  // inside {% if %}: unknown filters fail when they are reached
  std::vector<std::pair<int, std::string>> unknown_;  // line, message of those elsewhere
  std::vector<Callable*> callables_;                  // open macros
};

}  // namespace sluice::jinja
