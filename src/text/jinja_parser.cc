#include "text/jinja_parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace sluice::jinja {
namespace {

/// Counts one level of a nested construct for as long as it lives.
class Nest {
 public:
  Nest(int& depth, int limit) : depth_(depth) {
    if (++depth_ > limit) {
      --depth_;
      fail("expressions are nested deeper than {}", limit);
    }
  }
  ~Nest() { --depth_; }
  Nest(const Nest&) = delete;
  Nest& operator=(const Nest&) = delete;

 private:
  int& depth_;
};

/// Chains such as a.b.c and a + b + c grow in loops; their height bounds the recursion later.
void grow(Expression& node, int operand_height) {
  node.height = std::max(node.height, operand_height + 1);
  if (node.height > kMaxExpressionHeight) {
    fail("an expression has more than {} levels", kMaxExpressionHeight);
  }
}

template <typename Node>
std::unique_ptr<Node> make(int line) {
  auto node = std::make_unique<Node>();
  node->line = line;
  return node;
}

ExpressionPtr literal(Value value, int line) {
  auto node = make<Literal>(line);
  node->value = std::move(value);
  return node;
}

int height(const ExpressionPtr& node) { return node ? node->height : 0; }

constexpr int kMaxOpenExpressions = 200;

}  // namespace

const Token& Parser::advance() {
  const Token& token = tokens_[position_];
  if (position_ + 1 < tokens_.size()) ++position_;
  line_ = current().line;
  return token;
}

bool Parser::is_operator(std::string_view text) const {
  return is(TokenKind::kOperator) && current().text == text;
}

bool Parser::is_name(std::string_view text) const {
  return is(TokenKind::kName) && current().text == text;
}

bool Parser::skip_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  advance();
  return true;
}

bool Parser::skip_name(std::string_view text) {
  if (!is_name(text)) return false;
  advance();
  return true;
}

void Parser::expect_operator(std::string_view text) {
  if (!skip_operator(text)) fail_unexpected(text);
}

void Parser::expect_name(std::string_view text) {
  if (!skip_name(text)) fail_unexpected(text);
}

std::string Parser::expect_identifier() {
  if (!is(TokenKind::kName)) fail_unexpected("a name");
  return advance().text;
}

void Parser::fail_unexpected(std::string_view wanted) {
  switch (current().kind) {
    case TokenKind::kEnd:
      fail("expected {}, got the end of the template", wanted);
    case TokenKind::kBlockEnd:
    case TokenKind::kVariableEnd:
      fail("expected {}, got the end of the tag", wanted);
    case TokenKind::kString:
      fail("expected {}, got a string", wanted);
    default:
      fail("expected {}, got '{}'", wanted, current().text);
  }
}

template <typename Node>
ExpressionPtr Parser::parse_left(ExpressionPtr left, decltype(Node::op) op, ExpressionPtr right) {
  auto node = make<Node>(left->line);
  node->op = op;
  grow(*node, std::max(left->height, right->height));
  node->left = std::move(left);
  node->right = std::move(right);
  return node;
}

ExpressionPtr Parser::parse_expression(Conditional conditional) {
  const Nest nest(expression_depth_, kMaxOpenExpressions);
  if (conditional == Conditional::kExcluded) return parse_or();
  const size_t n_unknown = unknown_.size();
  ExpressionPtr node = parse_or();
  if (!is_name("if")) return node;
  while (skip_name("if")) {
    auto conditional_node = make<jinja::Conditional>(node->line);
    conditional_node->then = std::move(node);
    conditional_node->condition = parse_or();
    if (skip_name("else")) conditional_node->otherwise = parse_expression();
    grow(*conditional_node,
         std::max({height(conditional_node->then), height(conditional_node->condition),
                   height(conditional_node->otherwise)}));
    node = std::move(conditional_node);
  }
  unknown_.resize(n_unknown);  // names in any of the three parts fail when they are reached
  return node;
}

ExpressionPtr Parser::parse_or() {
  ExpressionPtr left = parse_and();
  while (skip_name("or")) {
    auto node = make<Logical>(left->line);
    node->left = std::move(left);
    node->right = parse_and();
    grow(*node, std::max(node->left->height, node->right->height));
    left = std::move(node);
  }
  return left;
}

ExpressionPtr Parser::parse_and() {
  ExpressionPtr left = parse_not();
  while (skip_name("and")) {
    auto node = make<Logical>(left->line);
    node->is_and = true;
    node->left = std::move(left);
    node->right = parse_not();
    grow(*node, std::max(node->left->height, node->right->height));
    left = std::move(node);
  }
  return left;
}

ExpressionPtr Parser::parse_not() {
  if (!is_name("not")) return parse_comparison();
  const Nest nest(expression_depth_, kMaxOpenExpressions);
  auto node = make<Unary>(current().line);
  advance();
  node->operand = parse_not();
  grow(*node, node->operand->height);
  return node;
}

bool Parser::parse_compare_operator(CompareOp& op) {
  static constexpr std::pair<std::string_view, CompareOp> kOperators[] = {
      {"==", CompareOp::kEqual},  {"!=", CompareOp::kNotEqual},
      {"<", CompareOp::kLess},    {"<=", CompareOp::kLessEqual},
      {">", CompareOp::kGreater}, {">=", CompareOp::kGreaterEqual}};
  for (const auto& [text, value] : kOperators) {
    if (!skip_operator(text)) continue;
    op = value;
    return true;
  }
  if (skip_name("in")) {
    op = CompareOp::kIn;
    return true;
  }
  if (is_name("not") && next_token().kind == TokenKind::kName && next_token().text == "in") {
    advance();
    advance();
    op = CompareOp::kNotIn;
    return true;
  }
  return false;
}

ExpressionPtr Parser::parse_comparison() {
  ExpressionPtr first = parse_sum();
  CompareOp op;
  if (!parse_compare_operator(op)) return first;
  auto node = make<Comparison>(first->line);
  grow(*node, first->height);
  node->first = std::move(first);
  do {
    node->rest.emplace_back(op, parse_sum());
    grow(*node, node->rest.back().second->height);
  } while (parse_compare_operator(op));
  return node;
}

ExpressionPtr Parser::parse_sum() {
  ExpressionPtr left = parse_concat();
  while (true) {
    if (skip_operator("+")) {
      left = parse_left<Binary>(std::move(left), BinaryOp::kAdd, parse_concat());
    } else if (skip_operator("-")) {
      left = parse_left<Binary>(std::move(left), BinaryOp::kSubtract, parse_concat());
    } else {
      return left;
    }
  }
}

ExpressionPtr Parser::parse_concat() {
  ExpressionPtr first = parse_product();
  if (!is_operator("~")) return first;
  auto node = make<Concat>(first->line);
  grow(*node, first->height);
  node->parts.push_back(std::move(first));
  while (skip_operator("~")) {
    node->parts.push_back(parse_product());
    grow(*node, node->parts.back()->height);
  }
  return node;
}

ExpressionPtr Parser::parse_product() {
  static constexpr std::pair<std::string_view, BinaryOp> kOperators[] = {
      {"*", BinaryOp::kMultiply},
      {"/", BinaryOp::kDivide},
      {"//", BinaryOp::kFloorDivide},
      {"%", BinaryOp::kModulo}};
  ExpressionPtr left = parse_power();
  while (true) {
    const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [&](const auto& entry) { return is_operator(entry.first); });
    if (found == std::end(kOperators)) return left;
    advance();
    left = parse_left<Binary>(std::move(left), found->second, parse_power());
  }
}

ExpressionPtr Parser::parse_power() {
  ExpressionPtr left = parse_unary();
  while (skip_operator("**")) {
    left = parse_left<Binary>(std::move(left), BinaryOp::kPower, parse_unary());
  }
  return left;
}

ExpressionPtr Parser::parse_unary(bool with_filters) {
  const Nest nest(expression_depth_, kMaxOpenExpressions);
  ExpressionPtr node;
  if (is_operator("-") || is_operator("+")) {
    auto unary = make<Unary>(current().line);
    unary->op = advance().text == "-" ? Unary::Op::kNegate : Unary::Op::kPlus;
    unary->operand = parse_unary(false);
    grow(*unary, unary->operand->height);
    node = std::move(unary);
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filters ? parse_filters_and_tests(std::move(node)) : std::move(node);
}

ExpressionPtr Parser::parse_primary() {
  const int line = current().line;
  switch (current().kind) {
    case TokenKind::kName:
      return parse_name_or_constant();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return parse_number();
    case TokenKind::kString: {
      std::string text;
      while (is(TokenKind::kString)) text += advance().text;
      return literal(std::move(text), line);
    }
    default:
      break;
  }
  if (skip_operator("(")) {
    ExpressionPtr node = parse_tuple(Conditional::kAllowed, true);
    expect_operator(")");
    return node;
  }
  if (is_operator("[")) return parse_list();
  if (is_operator("{")) return parse_dict();
  fail_unexpected("an expression");
}

ExpressionPtr Parser::parse_name_or_constant() {
  const Token& token = advance();
  if (token.text == "true" || token.text == "True") return literal(true, token.line);
  if (token.text == "false" || token.text == "False") return literal(false, token.line);
  if (token.text == "none" || token.text == "None") return literal(None{}, token.line);
  auto node = make<Name>(token.line);
  node->symbol = symbols_.intern(token.text);
  node->name = symbols_.name(node->symbol);
  for (Callable* callable : callables_) {
    callable->uses_caller |= node->symbol == Symbols::kCaller;
    callable->uses_varargs |= node->symbol == Symbols::kVarargs;
    callable->uses_kwargs |= node->symbol == Symbols::kKwargs;
  }
  return node;
}

ExpressionPtr Parser::parse_number() {
  const Token& token = advance();
  if (token.kind == TokenKind::kFloat)
    return literal(std::strtod(token.text.c_str(), nullptr), token.line);
  const char base_letter = token.text.size() > 1 ? char(token.text[1] | 0x20) : '0';
  const Int base = base_letter == 'x' ? 16 : base_letter == 'o' ? 8 : base_letter == 'b' ? 2 : 10;
  Int value = 0;
  for (const char c : token.text.substr(base == 10 ? 0 : 2)) {
    const Int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    if (__builtin_mul_overflow(value, base, &value) ||
        __builtin_add_overflow(value, digit, &value)) {
      fail("the integer {} is too large", token.text);
    }
  }
  return literal(value, token.line);
}

ExpressionPtr Parser::parse_list() {
  auto node = make<SequenceLiteral>(current().line);
  expect_operator("[");
  while (!is_operator("]")) {
    if (!node->items.empty()) expect_operator(",");
    if (is_operator("]")) break;
    node->items.push_back(parse_expression());
    grow(*node, node->items.back()->height);
  }
  expect_operator("]");
  return node;
}

ExpressionPtr Parser::parse_dict() {
  auto node = make<DictLiteral>(current().line);
  expect_operator("{");
  while (!is_operator("}")) {
    if (!node->entries.empty()) expect_operator(",");
    if (is_operator("}")) break;
    ExpressionPtr key = parse_expression();
    expect_operator(":");
    ExpressionPtr value = parse_expression();
    grow(*node, std::max(key->height, value->height));
    node->entries.emplace_back(std::move(key), std::move(value));
  }
  expect_operator("}");
  return node;
}

ExpressionPtr Parser::parse_tuple(Conditional conditional, bool in_parentheses,
                                  std::string_view end_name) {
  auto node = make<SequenceLiteral>(current().line);
  node->kind = SequenceKind::kTuple;
  bool is_tuple = false;
  while (true) {
    if (!node->items.empty()) expect_operator(",");
    if (is(TokenKind::kVariableEnd) || is(TokenKind::kBlockEnd) || is_operator(")") ||
        (!end_name.empty() && is_name(end_name))) {
      break;
    }
    node->items.push_back(parse_expression(conditional));
    grow(*node, node->items.back()->height);
    if (!is_operator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !node->items.empty()) return std::move(node->items[0]);
  if (!is_tuple && !in_parentheses) fail_unexpected("an expression");
  return node;
}

ExpressionPtr Parser::parse_postfix(ExpressionPtr node) {
  while (true) {
    if (is_operator(".") || is_operator("[")) {
      node = parse_subscript(std::move(node));
    } else if (is_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr Parser::parse_subscript(ExpressionPtr object) {
  const int line = current().line;
  if (skip_operator("[")) return parse_bracketed(std::move(object));
  expect_operator(".");
  if (is(TokenKind::kName)) {
    auto node = make<GetAttribute>(line);
    grow(*node, object->height);
    node->object = std::move(object);
    node->name = std::make_shared<String>(advance().text);
    return node;
  }
  if (!is(TokenKind::kInteger)) fail_unexpected("a name or number");
  auto node = make<GetItem>(line);
  grow(*node, object->height);
  node->object = std::move(object);
  node->key = parse_number();
  return node;
}

ExpressionPtr Parser::parse_bracketed(ExpressionPtr object) {
  const int line = current().line;
  ExpressionPtr bounds[3];
  int n_colons = 0;
  while (!is_operator("]") && !is_operator(",")) {
    if (skip_operator(":")) {
      if (++n_colons > 2) fail("a slice has at most three parts");
      continue;
    }
    if (bounds[n_colons]) fail_unexpected("']'");
    bounds[n_colons] = parse_expression();
  }
  const int highest =
      std::max({object->height, height(bounds[0]), height(bounds[1]), height(bounds[2])});
  if (n_colons) {
    expect_operator("]");
    auto node = make<GetSlice>(line);
    grow(*node, highest);
    node->object = std::move(object);
    node->start = std::move(bounds[0]);
    node->stop = std::move(bounds[1]);
    node->step = std::move(bounds[2]);
    return node;
  }
  auto node = make<GetItem>(line);
  grow(*node, highest);
  node->object = std::move(object);
  if (is_operator(",") && bounds[0]) {
    auto key = make<SequenceLiteral>(line);
    key->kind = SequenceKind::kTuple;
    key->items.push_back(std::move(bounds[0]));
    while (skip_operator(",")) {
      key->items.push_back(parse_expression());
      grow(*key, key->items.back()->height);
    }
    grow(*node, key->height);
    node->key = std::move(key);
  } else {
    node->key = std::move(bounds[0]);
  }
  if (!node->key) fail_unexpected("a subscript");
  expect_operator("]");
  return node;
}

ExpressionPtr Parser::parse_filters_and_tests(ExpressionPtr node) {
  while (true) {
    if (is_operator("|")) {
      node = parse_filters(std::move(node));
    } else if (is_name("is")) {
      node = parse_test(std::move(node));
    } else if (is_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

const Builtin* Parser::resolve(const Builtin* builtin, std::string_view kind,
                               std::string_view name) {
  if (!builtin && !is_conditional_) {
    unknown_.emplace_back(current().line, fmt::format("No {} named '{}'.", kind, name));
  }
  return builtin;
}

ExpressionPtr Parser::parse_filters(ExpressionPtr input, bool first_without_pipe) {
  while (first_without_pipe || is_operator("|")) {
    if (!first_without_pipe) advance();
    first_without_pipe = false;
    auto node = make<Filter>(current().line);
    node->name = expect_identifier();
    while (skip_operator(".")) (node->name += '.') += expect_identifier();
    node->builtin = resolve(find_filter(node->name), "filter", node->name);
    int highest = height(input);
    if (is_operator("(")) node->arguments = parse_arguments(highest);
    grow(*node, highest);
    node->input = std::move(input);
    input = std::move(node);
  }
  return input;
}

ExpressionPtr Parser::parse_test(ExpressionPtr input) {
  auto node = make<Test>(current().line);
  expect_name("is");
  const bool negated = skip_name("not");
  node->name = expect_identifier();
  while (skip_operator(".")) (node->name += '.') += expect_identifier();
  node->builtin = resolve(find_test(node->name), "test", node->name);
  int highest = input->height;
  const TokenKind kind = current().kind;
  if (is_operator("(")) {
    node->arguments = parse_arguments(highest);
  } else if (kind == TokenKind::kString || kind == TokenKind::kInteger ||
             kind == TokenKind::kFloat || is_operator("[") || is_operator("{") ||
             (kind == TokenKind::kName && !is_name("else") && !is_name("or") && !is_name("and"))) {
    if (is_name("is")) fail("tests cannot be chained with 'is'");
    node->arguments.positional.push_back(parse_postfix(parse_primary()));
    highest = std::max(highest, node->arguments.positional[0]->height);
  }
  grow(*node, highest);
  node->input = std::move(input);
  if (!negated) return node;
  auto inverse = make<Unary>(node->line);
  grow(*inverse, node->height);
  inverse->operand = std::move(node);
  return inverse;
}

ExpressionPtr Parser::parse_call(ExpressionPtr callee) {
  auto node = make<Call>(current().line);
  int highest = callee->height;
  node->arguments = parse_arguments(highest);
  grow(*node, highest);
  node->callee = std::move(callee);
  return node;
}

CallArguments Parser::parse_arguments(int& highest) {
  CallArguments arguments;
  expect_operator("(");
  for (bool first = true; !is_operator(")"); first = false) {
    if (!first) expect_operator(",");
    if (is_operator(")")) break;
    ExpressionPtr* slot;
    if (is_operator("**") || is_operator("*")) {
      slot = advance().text == "**" ? &arguments.dict : &arguments.list;
      if (*slot || (slot == &arguments.list && arguments.dict)) fail("invalid call arguments");
    } else if (is(TokenKind::kName) && next_token().kind == TokenKind::kOperator &&
               next_token().text == "=") {
      if (arguments.dict) fail("invalid call arguments");
      arguments.named.emplace_back(advance().text, nullptr);
      advance();
      slot = &arguments.named.back().second;
    } else {
      if (arguments.list || arguments.dict || !arguments.named.empty()) {
        fail("positional arguments come before named ones");
      }
      slot = &arguments.positional.emplace_back();
    }
    *slot = parse_expression();
    highest = std::max(highest, (*slot)->height);
  }
  expect_operator(")");
  return arguments;
}

}  // namespace sluice::jinja
