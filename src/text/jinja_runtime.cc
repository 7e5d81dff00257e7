#include "text/jinja_runtime.h"

#include <algorithm>

#include "text/jinja_objects.h"

namespace sluice::jinja {

/// One level of evaluation, for as long as it lives.
class Runtime::Level {
 public:
  Level(Runtime& runtime, int line) : runtime_(runtime) {
    Budget::current()->step();
    if (runtime_.depth_ >= kMaxEvaluationDepth) {
      throw Failure(ErrorCode::kResource, "the template recurses too deeply");
    }
    ++runtime_.depth_;
    runtime_.line_ = line;
  }
  ~Level() { --runtime_.depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  Runtime& runtime_;
};

Runtime::Enter::Enter(Runtime& runtime, ScopePtr parent)
    : runtime_(runtime), previous_(runtime.scope_) {
  runtime_.scope_ = std::make_shared<Scope>();
  runtime_.scope_->parent = std::move(parent);
}

Runtime::Runtime(const Symbols& symbols, std::string now)
    : symbols_(symbols), scope_(std::make_shared<Scope>()), now_(std::move(now)) {}

Runtime::~Runtime() {
  // Macros refer to the scopes they stand in, and namespaces may hold themselves. Emptied one by
  // one, they also cannot form a chain whose destruction recurses.
  for (const ScopePtr& scope : kept_scopes_) scope->variables.clear();
  for (const auto& object : kept_) {
    if (auto* ns = dynamic_cast<Namespace*>(object.get())) ns->attributes.clear();
    if (auto* loop = dynamic_cast<Loop*>(object.get())) loop->last_changed.clear();
  }
}

void Runtime::define(const std::string& name, const Value& value) {
  const int symbol = symbols_.find(name);
  if (symbol >= 0) assign(symbol, value);
}

Value Runtime::evaluate(const Expression& expression) {
  const Level level(*this, expression.line);
  return expression.evaluate(*this);
}

Flow Runtime::execute(const Body& body, Output& out) {
  for (const auto& statement : body) {
    const Level level(*this, statement->line);
    const Flow flow = statement->execute(*this, out);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Value Runtime::look_up(int symbol, const StringPtr& name) const {
  for (const Scope* scope = scope_.get(); scope; scope = scope->parent.get()) {
    spend(scope->variables.size() / 16);
    for (const auto& [id, value] : scope->variables) {
      if (id == symbol) return value;
    }
  }
  if (const Builtin* builtin = find_global(name->text)) {
    return ObjectPtr(std::make_shared<Function>(builtin, Value()));
  }
  return Undefined{name};
}

void Runtime::assign(int symbol, Value value) {
  for (auto& [id, variable] : scope_->variables) {
    if (id == symbol) {
      variable = std::move(value);
      return;
    }
  }
  scope_->variables.emplace_back(symbol, std::move(value));
}

Value Runtime::get_attribute(const Value& object, const StringPtr& name) {
  if (const Undefined* undefined = object.undefined()) fail_undefined(*undefined);
  Value result;
  if (find_object_attribute(object, name->text, result)) return result;
  if (const Builtin* method = find_method(object, name->text)) {
    return ObjectPtr(std::make_shared<Function>(method, object));
  }
  if (is_forbidden_method(object, name->text)) {
    return Undefined{
        std::make_shared<String>(fmt::format("access to attribute '{}' of '{}' object is unsafe.",
                                             name->text, type_name(object))),
        ""};
  }
  if (const Dict* dict = object.dict()) {
    if (const Value* item = dict->find_text(name->text)) return *item;
  }
  return Undefined{name, type_name(object)};
}

Value Runtime::get_item(const Value& object, const Value& key) {
  if (const Undefined* undefined = object.undefined()) fail_undefined(*undefined);
  Value result;
  if (find_item(object, key, result)) return result;
  if (!key.string()) {
    return Undefined{std::make_shared<String>(repr(key)), type_name(object)};
  }
  const StringPtr name = key.shared_string();
  if (object.dict() && !find_method(object, name->text) &&
      !is_forbidden_method(object, name->text)) {
    return Undefined{name, "dict"};
  }
  return get_attribute(object, name);
}

Value Runtime::call(const Value& callee, const Arguments& arguments) {
  if (const Undefined* undefined = callee.undefined()) fail_undefined(*undefined);
  if (const auto* function = callee.as<Function>()) {
    return call_builtin(*function->builtin, *this, function->self, arguments);
  }
  if (const auto* macro = callee.as<Macro>()) {
    return call_body(*macro->callable_, macro->scope, arguments);
  }
  if (auto* joiner = callee.as<Joiner>()) {
    if (std::exchange(joiner->used, true)) return joiner->separator;
    return "";
  }
  if (auto* loop = callee.as<Loop>()) {
    if (!loop->node.recursive) fail("the loop must have the 'recursive' marker to be called");
    if (arguments.positional.size() != 1 || !arguments.named.empty()) {
      fail("loop() takes one argument");
    }
    const ScopePtr before = std::exchange(scope_, loop->scope);
    Output text;
    loop->node.run(*this, arguments.positional[0], loop->depth0 + 1, text);
    scope_ = before;
    return text.take();
  }
  fail("'{}' object is not callable", type_name(callee));
}

Value Runtime::call_body(const Callable& callable, const ScopePtr& scope,
                         const Arguments& arguments) {
  const Enter enter(*this, scope);
  spend(callable.parameters.size() * (1 + arguments.named.size() / 4));
  bind_special_names(callable, arguments);
  bind_parameters(callable, arguments);
  Output text;
  execute(callable.body, text);
  return text.take();
}

void Runtime::bind_special_names(const Callable& callable, const Arguments& arguments) {
  const size_t n_parameters = callable.parameters.size();
  const auto is_parameter = [&](const std::string& name) {
    return std::any_of(callable.parameters.begin(), callable.parameters.end(),
                       [&](const Parameter& p) { return p.name->text == name; });
  };
  if (arguments.positional.size() > n_parameters && !callable.uses_varargs) {
    fail("macro '{}' takes not more than {} argument(s)", callable.name->text, n_parameters);
  }
  Value caller = Undefined{std::make_shared<String>("No caller defined"), ""};
  std::vector<std::pair<Value, Value>> further;
  for (const auto& [name, value] : arguments.named) {
    if (is_parameter(name)) continue;
    if (name == "caller" && callable.uses_caller) {
      caller = value;
    } else if (callable.uses_kwargs) {
      further.emplace_back(name, value);
    } else {
      fail("macro '{}' takes no keyword argument '{}'", callable.name->text, name);
    }
  }
  if (callable.uses_caller) assign(Symbols::kCaller, std::move(caller));
  if (callable.uses_kwargs) assign(Symbols::kKwargs, Value::dict(std::move(further)));
  if (callable.uses_varargs) {
    const auto begin = arguments.positional.begin();
    const auto n_bound = long(std::min(n_parameters, arguments.positional.size()));
    assign(Symbols::kVarargs,
           Value::tuple(std::vector<Value>(begin + n_bound, arguments.positional.end())));
  }
}

void Runtime::bind_parameters(const Callable& callable, const Arguments& arguments) {
  for (size_t i = 0; i < callable.parameters.size(); ++i) {
    const Parameter& parameter = callable.parameters[i];
    const Value* named = arguments.find(parameter.name->text);
    if (i < arguments.positional.size()) {
      if (named) fail("got two values for the argument '{}'", parameter.name->text);
      assign(parameter.symbol, arguments.positional[i]);
    } else if (named) {
      assign(parameter.symbol, *named);
    } else if (parameter.fallback) {
      assign(parameter.symbol, evaluate(*parameter.fallback));
    } else {
      assign(parameter.symbol,
             Undefined{std::make_shared<String>(
                           fmt::format("parameter '{}' was not provided", parameter.name->text)),
                       ""});
    }
  }
}

}  // namespace sluice::jinja
