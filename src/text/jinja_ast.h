// The syntax tree of a template. Nodes evaluate themselves (jinja_expressions.cc, _statements.cc).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_builtins.h"
#include "text/jinja_operators.h"

namespace sluice::jinja {

class Runtime;

struct Expression {
  virtual ~Expression() = default;
  virtual Value evaluate(Runtime& runtime) const = 0;
  int line = 0;
  int height = 1;  // 1 + the height of the highest operand
};
using ExpressionPtr = std::unique_ptr<Expression>;

struct Literal : Expression {
  Value value;
  Value evaluate(Runtime& runtime) const override;
};

struct Name : Expression {
  int symbol = 0;
  StringPtr name;
  Value evaluate(Runtime& runtime) const override;
};

struct SequenceLiteral : Expression {
  SequenceKind kind = SequenceKind::kList;
  std::vector<ExpressionPtr> items;
  Value evaluate(Runtime& runtime) const override;
};

struct DictLiteral : Expression {
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> entries;
  Value evaluate(Runtime& runtime) const override;
};

struct Conditional : Expression {
  ExpressionPtr condition, then, otherwise;  // otherwise may be null: undefined
  Value evaluate(Runtime& runtime) const override;
};

struct Logical : Expression {
  bool is_and = false;
  ExpressionPtr left, right;
  Value evaluate(Runtime& runtime) const override;
};

struct Unary : Expression {
  enum class Op { kNot, kNegate, kPlus } op = Op::kNot;
  ExpressionPtr operand;
  Value evaluate(Runtime& runtime) const override;
};

struct Binary : Expression {
  BinaryOp op = BinaryOp::kAdd;
  ExpressionPtr left, right;
  Value evaluate(Runtime& runtime) const override;
};

struct Concat : Expression {
  std::vector<ExpressionPtr> parts;
  Value evaluate(Runtime& runtime) const override;
};

struct Comparison : Expression {
  ExpressionPtr first;
  std::vector<std::pair<CompareOp, ExpressionPtr>> rest;  // a < b < c
  Value evaluate(Runtime& runtime) const override;
};

struct GetAttribute : Expression {
  ExpressionPtr object;
  StringPtr name;
  Value evaluate(Runtime& runtime) const override;
};

struct GetItem : Expression {
  ExpressionPtr object, key;
  Value evaluate(Runtime& runtime) const override;
};

struct GetSlice : Expression {
  ExpressionPtr object, start, stop, step;  // bounds may be null
  Value evaluate(Runtime& runtime) const override;
};

struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr list, dict;  // *list, **dict; may be null

  Arguments evaluate(Runtime& runtime) const;
};

struct Call : Expression {
  ExpressionPtr callee;
  CallArguments arguments;
  Value evaluate(Runtime& runtime) const override;
  Value invoke(Runtime& runtime, Arguments values) const;
};

struct Filter : Expression {
  ExpressionPtr input;
  std::string name;
  const Builtin* builtin = nullptr;  // null: fails when it is reached
  CallArguments arguments;
  Value evaluate(Runtime& runtime) const override;
};

struct Test : Expression {
  ExpressionPtr input;
  std::string name;
  const Builtin* builtin = nullptr;  // null: fails when it is reached
  CallArguments arguments;
  Value evaluate(Runtime& runtime) const override;
};

// ---- statements ----

enum class Flow { kNext, kBreak, kContinue };

struct Statement {
  virtual ~Statement() = default;
  virtual Flow execute(Runtime& runtime, Output& out) const = 0;
  int line = 0;
};
using Body = std::vector<std::unique_ptr<Statement>>;

/// What can be assigned: a name, an attribute of a namespace, or a tuple of these.
struct Target {
  int symbol = -1;
  StringPtr name;
  StringPtr attribute;  // null for a plain name
  std::vector<Target> items;
  bool is_tuple = false;

  void assign(Runtime& runtime, const Value& value) const;
};

struct Data : Statement {
  std::string text;
  Flow execute(Runtime& runtime, Output& out) const override;
};

struct Print : Statement {
  std::vector<ExpressionPtr> values;
  Flow execute(Runtime& runtime, Output& out) const override;
};

struct If : Statement {
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  Body otherwise;
  Flow execute(Runtime& runtime, Output& out) const override;
};

struct For : Statement {
  Target target;
  ExpressionPtr iterable, condition;  // condition may be null
  Body body, otherwise;
  bool recursive = false;
  Flow execute(Runtime& runtime, Output& out) const override;
  /// Runs the loop over `iterable`; `depth0` counts the recursions.
  void run(Runtime& runtime, const Value& values, int depth0, Output& out) const;

 private:
  SequencePtr select(Runtime& runtime, const Value& values) const;
};

struct Set : Statement {
  Target target;
  ExpressionPtr value;
  Flow execute(Runtime& runtime, Output& out) const override;
};

struct SetBlock : Statement {
  Target target;
  ExpressionPtr filter;  // may be null
  Body body;
  Flow execute(Runtime& runtime, Output& out) const override;
};

struct With : Statement {
  std::vector<std::pair<Target, ExpressionPtr>> values;
  Body body;
  Flow execute(Runtime& runtime, Output& out) const override;
};

struct FilterBlock : Statement {
  ExpressionPtr filter;
  Body body;
  Flow execute(Runtime& runtime, Output& out) const override;
};

struct Parameter {
  int symbol = 0;
  StringPtr name;
  ExpressionPtr fallback;  // null: required
};

/// A body with parameters: a macro, or the body of a {% call %}.
struct Callable {
  StringPtr name;
  std::vector<Parameter> parameters;
  Body body;
  // Which of the special names the body uses; only those are accepted and bound.
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct MacroDefinition : Statement {
  int symbol = 0;
  Callable callable;
  Flow execute(Runtime& runtime, Output& out) const override;
};

struct CallBlock : Statement {
  std::unique_ptr<Call> call;
  Callable caller;
  Flow execute(Runtime& runtime, Output& out) const override;
};

struct Jump : Statement {
  Flow flow = Flow::kBreak;
  Flow execute(Runtime& runtime, Output& out) const override;
};

/// {% generation %} and {% block %}: a body in a scope of its own.
struct ScopedBody : Statement {
  Body body;
  bool is_generation = false;
  Flow execute(Runtime& runtime, Output& out) const override;
};

/// {% include %}, {% import %}, {% extends %}: fails when it is reached.
struct Unsupported : Statement {
  std::string tag;
  Flow execute(Runtime& runtime, Output& out) const override;
};

/// Names get numbers when the template is parsed.
class Symbols {
 public:
  Symbols();
  int intern(const std::string& name);
  int find(const std::string& name) const;  // -1 when the template never uses it
  size_t size() const { return names_.size(); }
  const StringPtr& name(int symbol) const { return names_[size_t(symbol)]; }

  static constexpr int kLoop = 0, kCaller = 1, kVarargs = 2, kKwargs = 3, kBlockText = 4;

 private:
  std::unordered_map<std::string, int> numbers_;
  std::vector<StringPtr> names_;
};

class Template {
 public:
  Body body;
  Symbols symbols;
};

/// Throws Failure; `line` is kept at the line being read.
Template parse_template(std::string_view source, int& line);

}  // namespace sluice::jinja
