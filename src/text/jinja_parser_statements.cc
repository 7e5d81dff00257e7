#include <algorithm>

#include "text/jinja_parser.h"

namespace sluice::jinja {
namespace {

template <typename T>
class Restore {
 public:
  Restore(T& variable, T value) : variable_(variable), before_(variable) { variable_ = value; }
  ~Restore() { variable_ = before_; }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& variable_;
  T before_;
};

template <typename Node>
std::unique_ptr<Node> make(int line) {
  auto node = std::make_unique<Node>();
  node->line = line;
  return node;
}

}  // namespace

Symbols::Symbols() {
  for (const char* name : {"loop", "caller", "varargs", "kwargs", "(block)"}) intern(name);
}

int Symbols::intern(const std::string& name) {
  const auto [entry, is_new] = numbers_.emplace(name, int(names_.size()));
  if (is_new) names_.push_back(std::make_shared<String>(name));
  return entry->second;
}

int Symbols::find(const std::string& name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? -1 : found->second;
}

Template parse_template(std::string_view source, int& line) {
  Template result;
  result.body = Parser(tokenize(source, line), result.symbols, line).parse();
  return result;
}

Body Parser::parse() {
  Body body = parse_body({});
  if (!is(TokenKind::kEnd)) fail_unexpected("the end of the template");
  if (!unknown_.empty()) {
    line_ = unknown_.front().first;
    fail("{}", unknown_.front().second);
  }
  return body;
}

Body Parser::parse_body(EndNames end_names) {
  if (++depth_ > kMaxBlockDepth) fail("blocks are nested deeper than {}", kMaxBlockDepth);
  Body body;
  while (!is(TokenKind::kEnd)) {
    if (is(TokenKind::kData)) {
      auto data = make<Data>(current().line);
      data->text = advance().text;
      body.push_back(std::move(data));
    } else if (is(TokenKind::kVariableBegin)) {
      body.push_back(parse_output());
    } else {
      advance();  // the opening of a block
      if (std::any_of(end_names.begin(), end_names.end(), [&](auto n) { return is_name(n); })) {
        --depth_;
        return body;
      }
      body.push_back(parse_statement());
      if (!is(TokenKind::kBlockEnd)) fail_unexpected("the end of the tag");
      advance();
    }
  }
  if (end_names.size() > 0) {
    fail("unexpected end of template, expected '{}'", *(end_names.end() - 1));
  }
  --depth_;
  return body;
}

Body Parser::parse_block(EndNames end_names) {
  skip_operator(":");
  if (!is(TokenKind::kBlockEnd)) fail_unexpected("the end of the tag");
  advance();
  return parse_body(end_names);
}

Body Parser::parse_block_to(std::string_view end_name) {
  Body body = parse_block({end_name});
  advance();
  return body;
}

std::unique_ptr<Statement> Parser::parse_output() {
  auto node = make<Print>(current().line);
  advance();
  node->values.push_back(parse_tuple(Conditional::kAllowed, false));
  if (!is(TokenKind::kVariableEnd)) fail_unexpected("the end of the tag");
  advance();
  return node;
}

std::unique_ptr<Statement> Parser::parse_statement() {
  if (!is(TokenKind::kName)) fail_unexpected("the name of a tag");
  const std::string& name = current().text;
  if (name == "if") return parse_if();
  if (name == "for") return parse_for();
  if (name == "set") return parse_set();
  if (name == "with") return parse_with();
  if (name == "filter") return parse_filter_block();
  if (name == "macro") return parse_macro();
  if (name == "call") return parse_call_block();
  if (name == "break") return parse_jump(Flow::kBreak);
  if (name == "continue") return parse_jump(Flow::kContinue);
  if (name == "generation") return parse_generation();
  if (name == "block") return parse_named_block();
  if (name == "print") return parse_print();
  if (name == "include" || name == "import" || name == "from" || name == "extends") {
    return parse_unsupported();
  }
  fail("encountered unknown tag '{}'", name);
}

std::unique_ptr<Statement> Parser::parse_if() {
  auto node = make<If>(current().line);
  const Restore<bool> lenient(is_conditional_, true);
  while (is_name("if") || is_name("elif")) {
    advance();
    ExpressionPtr condition = parse_tuple(Conditional::kExcluded, false);
    Body body = parse_block({"elif", "else", "endif"});
    node->branches.emplace_back(std::move(condition), std::move(body));
  }
  if (skip_name("else")) {
    node->otherwise = parse_block_to("endif");
  } else {
    expect_name("endif");
  }
  return node;
}

std::unique_ptr<Statement> Parser::parse_for() {
  auto node = make<For>(current().line);
  advance();
  ++nested_loops_;
  node->target = parse_target(true);
  refuse_loop_variable(node->target);
  --nested_loops_;
  expect_name("in");
  node->iterable = parse_tuple(Conditional::kExcluded, false, "recursive");
  const Restore<bool> strict(is_conditional_, false);
  if (skip_name("if")) node->condition = parse_expression();
  node->recursive = skip_name("recursive");
  ++nested_loops_;
  ++loops_;
  node->body = parse_block({"else", "endfor"});
  --loops_;
  --nested_loops_;
  if (skip_name("else")) {
    node->otherwise = parse_block_to("endfor");
  } else {
    expect_name("endfor");
  }
  return node;
}

/// What the filters of a block read: the name that holds its text.
ExpressionPtr Parser::block_text(int line) const {
  auto node = make<Name>(line);
  node->symbol = Symbols::kBlockText;
  node->name = symbols_.name(Symbols::kBlockText);
  return node;
}

std::unique_ptr<Statement> Parser::parse_set() {
  const int line = current().line;
  advance();
  Target target = parse_target(true, true);
  refuse_loop_variable(target);
  if (skip_operator("=")) {
    auto node = make<Set>(line);
    node->target = std::move(target);
    node->value = parse_tuple(Conditional::kAllowed, false);
    return node;
  }
  auto node = make<SetBlock>(line);
  node->target = std::move(target);
  if (is_operator("|")) node->filter = parse_filters(block_text(line));
  const Restore<bool> strict(is_conditional_, false);
  node->body = parse_block_to("endset");
  return node;
}

std::unique_ptr<Statement> Parser::parse_with() {
  auto node = make<With>(current().line);
  advance();
  while (!is(TokenKind::kBlockEnd)) {
    if (!node->values.empty()) expect_operator(",");
    Target target = parse_target(true);
    expect_operator("=");
    node->values.emplace_back(std::move(target), parse_expression());
  }
  const Restore<bool> strict(is_conditional_, false);
  node->body = parse_block_to("endwith");
  return node;
}

std::unique_ptr<Statement> Parser::parse_filter_block() {
  auto node = make<FilterBlock>(current().line);
  advance();
  const Restore<bool> strict(is_conditional_, false);
  node->filter = parse_filters(block_text(node->line), true);
  node->body = parse_block_to("endfilter");
  return node;
}

std::unique_ptr<Statement> Parser::parse_macro() {
  auto node = make<MacroDefinition>(current().line);
  advance();
  const Target name = parse_single_target(false);
  node->symbol = name.symbol;
  node->callable.name = name.name;
  parse_parameters(node->callable);
  parse_callable_body(node->callable, "endmacro");
  return node;
}

std::unique_ptr<Statement> Parser::parse_call_block() {
  auto node = make<CallBlock>(current().line);
  advance();
  node->caller.name = symbols_.name(Symbols::kCaller);
  if (is_operator("(")) parse_parameters(node->caller);
  ExpressionPtr call = parse_expression();
  if (!dynamic_cast<Call*>(call.get())) fail("expected a call in the tag 'call'");
  node->call.reset(static_cast<Call*>(call.release()));
  parse_callable_body(node->caller, "endcall");
  return node;
}

void Parser::parse_callable_body(Callable& callable, std::string_view end_name) {
  const Restore<bool> strict(is_conditional_, false);
  const Restore<int> no_loop(loops_, 0);
  callables_.push_back(&callable);
  callable.body = parse_block_to(end_name);
  callables_.pop_back();
}

void Parser::refuse_loop_variable(const Target& target) const {
  for (const Target& item : target.items) refuse_loop_variable(item);
  if (nested_loops_ && target.symbol == Symbols::kLoop && !target.attribute) {
    fail("cannot assign to the special variable 'loop' in a loop");
  }
}

void Parser::parse_parameters(Callable& callable) {
  expect_operator("(");
  while (!is_operator(")")) {
    if (!callable.parameters.empty()) expect_operator(",");
    const Target name = parse_single_target(false);
    Parameter parameter{name.symbol, name.name, nullptr};
    if (name.symbol == Symbols::kCaller && !is_operator("=")) {
      fail("the parameter 'caller' needs a default");
    }
    if (skip_operator("=")) {
      parameter.fallback = parse_expression();
    } else if (!callable.parameters.empty() && callable.parameters.back().fallback) {
      fail("a parameter without default follows one with default");
    }
    callable.parameters.push_back(std::move(parameter));
  }
  expect_operator(")");
}

std::unique_ptr<Statement> Parser::parse_jump(Flow flow) {
  auto node = make<Jump>(current().line);
  node->flow = flow;
  if (loops_ == 0) fail("'{}' outside loop", current().text);
  advance();
  return node;
}

std::unique_ptr<Statement> Parser::parse_generation() {
  auto node = make<ScopedBody>(current().line);
  advance();
  node->is_generation = true;
  const Restore<bool> strict(is_conditional_, false);
  const Restore<int> no_loop(loops_, 0);
  node->body = parse_block_to("endgeneration");
  return node;
}

std::unique_ptr<Statement> Parser::parse_named_block() {
  auto node = make<ScopedBody>(current().line);
  advance();
  const std::string name = expect_identifier();
  skip_name("scoped");
  skip_name("required");
  const Restore<bool> strict(is_conditional_, false);
  const Restore<int> no_loop(loops_, 0);
  node->body = parse_block_to("endblock");
  skip_name(name);
  return node;
}

std::unique_ptr<Statement> Parser::parse_print() {
  auto node = make<Print>(current().line);
  advance();
  while (!is(TokenKind::kBlockEnd)) {
    if (!node->values.empty()) expect_operator(",");
    node->values.push_back(parse_expression());
  }
  return node;
}

std::unique_ptr<Statement> Parser::parse_unsupported() {
  auto node = make<Unsupported>(current().line);
  node->tag = advance().text;
  while (!is(TokenKind::kBlockEnd) && !is(TokenKind::kEnd)) advance();
  return node;
}

Target Parser::parse_single_target(bool with_attribute) {
  Target target;
  const std::string name = expect_identifier();
  for (const char* reserved : {"true", "false", "none", "True", "False", "None"}) {
    if (name == reserved) fail("cannot assign to '{}'", name);
  }
  target.symbol = symbols_.intern(name);
  target.name = symbols_.name(target.symbol);
  if (with_attribute && skip_operator(".")) {
    target.attribute = std::make_shared<String>(expect_identifier());
  }
  return target;
}

Target Parser::parse_target(bool with_tuple, bool with_attribute) {
  if (++expression_depth_ > kMaxBlockDepth)
    fail("targets are nested deeper than {}", kMaxBlockDepth);
  Target tuple;
  while (true) {
    if (skip_operator("(")) {
      tuple.items.push_back(parse_target(true, with_attribute));
      expect_operator(")");
    } else {
      tuple.items.push_back(parse_single_target(with_attribute));
    }
    if (!with_tuple || !skip_operator(",")) break;
    tuple.is_tuple = true;
    if (is_name("in") || is_operator(")")) break;
  }
  --expression_depth_;
  if (!tuple.is_tuple) return std::move(tuple.items[0]);
  return tuple;
}

}  // namespace sluice::jinja
