// Objects with state or behaviour that templates handle: ranges, iterators, functions, loops.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_runtime.h"

namespace sluice::jinja {

struct Range : Object {
  Range(int64_t first, int64_t last, int64_t stride);
  const char* type_name() const override { return "range"; }
  std::string repr() const override;
  bool truthy() const override { return n_items > 0; }
  SequencePtr iterate() override;
  int64_t length() const override { return n_items; }
  bool contains(const Value& value) const;

  int64_t start, stop, step, n_items;
};

/// What lazy filters return: truthy, without length, and empty after its first use.
struct Iterator : Object {
  explicit Iterator(std::vector<Value> values, const char* python_type = "generator");
  const char* type_name() const override { return python_type_; }
  SequencePtr iterate() override;

 private:
  SequencePtr items_;
  const char* python_type_;
};
Value make_iterator(std::vector<Value> values);

struct DictView : Object {
  enum class Part { kKeys, kValues, kItems };
  DictView(DictPtr of, Part which) : Object(of->depth), dict(std::move(of)), part(which) {}
  const char* type_name() const override;
  std::string repr() const override;
  bool truthy() const override { return !dict->entries.empty(); }
  SequencePtr iterate() override;
  int64_t length() const override { return int64_t(dict->entries.size()); }

  DictPtr dict;
  Part part;
};

struct Namespace : Object {
  /// Attributes may hold anything, themselves too: Runtime::keep must own a namespace.
  explicit Namespace(std::vector<std::pair<StringPtr, Value>> initial);
  const char* type_name() const override { return "Namespace"; }
  std::string repr() const override;
  void set(const StringPtr& name, Value value);
  const Value* find(std::string_view name) const;

  std::vector<std::pair<StringPtr, Value>> attributes;

 private:
  Charge initial_charge_;
};

/// A global function or a method of `self`.
struct Function : Object {
  Function(const Builtin* of, Value object)
      : Object(depth_of(object)), builtin(of), self(std::move(object)) {}
  const char* type_name() const override { return "builtin_function_or_method"; }
  bool callable() const override { return true; }

  const Builtin* builtin;
  Value self;
};

struct Macro : Object {
  Macro(const Callable* of, ScopePtr defined_in) : callable_(of), scope(std::move(defined_in)) {}
  const char* type_name() const override { return "Macro"; }
  std::string repr() const override;
  bool callable() const override { return true; }

  const Callable* callable_;
  ScopePtr scope;
};

struct Loop : Object {
  Loop(const For& statement, SequencePtr values, int recursion, ScopePtr outside)
      : Object(values->depth),
        node(statement),
        items(std::move(values)),
        depth0(recursion),
        scope(std::move(outside)) {}
  const char* type_name() const override { return "LoopContext"; }
  bool callable() const override { return true; }
  int64_t length() const override { return int64_t(items->items.size()); }
  /// False when loops have no attribute of that name.
  bool find(std::string_view name, Value& value) const;

  const For& node;
  SequencePtr items;
  int depth0;
  ScopePtr scope;  // where the statement stands, if it is recursive
  size_t index0 = 0;
  std::vector<Value> last_changed;
  bool has_changed_before = false;
};

struct Cycler : Object {
  explicit Cycler(std::vector<Value> values) : Object(depth_of(values)), items(std::move(values)) {}
  const char* type_name() const override { return "Cycler"; }

  std::vector<Value> items;
  size_t position = 0;
};

struct Joiner : Object {
  explicit Joiner(Value text) : Object(depth_of(text)), separator(std::move(text)) {}
  const char* type_name() const override { return "Joiner"; }
  bool callable() const override { return true; }

  Value separator;
  bool used = false;
};

/// Methods of the objects above; null when there is none of that name.
const Builtin* find_object_method(const Object& object, std::string_view name);
/// Data attributes of the objects above.
bool find_object_attribute(const Value& object, std::string_view name, Value& value);

}  // namespace sluice::jinja
