// The state of one rendering: scopes, limits, the objects that templates can make.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_ast.h"

namespace sluice::jinja {

/// Variables of a block. Bodies of loops, macros, with and call have scopes of their own; if has
/// not.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<int, Value>> variables;  // symbol, value
  Charge charge{sizeof(Scope) + 2 * sizeof(std::pair<int, Value>)};
};
using ScopePtr = std::shared_ptr<Scope>;

class Runtime {
 public:
  Runtime(const Symbols& symbols, std::string now);
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Defines a variable of the outermost scope; names the template does not use are dropped.
  void define(const std::string& name, const Value& value);

  Value evaluate(const Expression& expression);
  Flow execute(const Body& body, Output& out);

  Value look_up(int symbol, const StringPtr& name) const;
  void assign(int symbol, Value value);

  /// object.name and object[key]: undefined when there is none.
  Value get_attribute(const Value& object, const StringPtr& name);
  Value get_item(const Value& object, const Value& key);
  Value call(const Value& callee, const Arguments& arguments);
  Value call_body(const Callable& callable, const ScopePtr& scope, const Arguments& arguments);

  /// Keeps what may refer to itself, and takes it apart when the rendering ends.
  void keep(std::shared_ptr<Object> object) { kept_.push_back(std::move(object)); }
  void keep(ScopePtr scope) { kept_scopes_.push_back(std::move(scope)); }

  const ScopePtr& scope() const { return scope_; }
  int line() const { return line_; }
  void set_line(int line) { line_ = line; }
  /// "YYYY-MM-DDTHH:MM:SS"; empty: the clock.
  const std::string& now() const { return now_; }

  /// Byte ranges that {% generation %} blocks wrote to the outermost text.
  std::vector<std::pair<size_t, size_t>> generation;
  const Output* outermost = nullptr;

  /// Runs a block in a scope of its own.
  class Enter {
   public:
    Enter(Runtime& runtime, ScopePtr parent);
    explicit Enter(Runtime& runtime) : Enter(runtime, runtime.scope_) {}
    ~Enter() { runtime_.scope_ = std::move(previous_); }
    Enter(const Enter&) = delete;
    Enter& operator=(const Enter&) = delete;

   private:
    Runtime& runtime_;
    ScopePtr previous_;
  };

 private:
  class Level;

  void bind_parameters(const Callable& callable, const Arguments& arguments);
  void bind_special_names(const Callable& callable, const Arguments& arguments);

  const Symbols& symbols_;
  ScopePtr scope_;
  std::vector<ScopePtr> kept_scopes_;
  std::vector<std::shared_ptr<Object>> kept_;
  std::string now_;
  int depth_ = 0;
  int line_ = 1;
};

}  // namespace sluice::jinja
