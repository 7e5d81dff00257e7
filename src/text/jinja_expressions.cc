#include "text/jinja_objects.h"

namespace sluice::jinja {

Value Literal::evaluate(Runtime&) const { return value; }

Value Name::evaluate(Runtime& runtime) const { return runtime.look_up(symbol, name); }

Value SequenceLiteral::evaluate(Runtime& runtime) const {
  std::vector<Value> values;
  values.reserve(items.size());
  for (const ExpressionPtr& item : items) values.push_back(runtime.evaluate(*item));
  return SequencePtr(std::make_shared<Sequence>(std::move(values), kind));
}

Value DictLiteral::evaluate(Runtime& runtime) const {
  std::vector<std::pair<Value, Value>> pairs;
  pairs.reserve(entries.size());
  for (const auto& [key, value] : entries) {
    Value k = runtime.evaluate(*key);
    pairs.emplace_back(std::move(k), runtime.evaluate(*value));
  }
  return Value::dict(std::move(pairs));
}

Value Conditional::evaluate(Runtime& runtime) const {
  if (truthy(runtime.evaluate(*condition))) return runtime.evaluate(*then);
  if (otherwise) return runtime.evaluate(*otherwise);
  return Undefined{
      std::make_shared<String>(
          "the inline if-expression evaluated to false and no else section was defined."),
      ""};
}

Value Logical::evaluate(Runtime& runtime) const {
  Value value = runtime.evaluate(*left);
  return truthy(value) == is_and ? runtime.evaluate(*right) : value;
}

Value Unary::evaluate(Runtime& runtime) const {
  const Value value = runtime.evaluate(*operand);
  if (op == Op::kNot) return !truthy(value);
  if (op == Op::kNegate) return negate(value);
  if (const Undefined* undefined = value.undefined()) fail_undefined(*undefined);
  if (!is_number(value)) fail("bad operand type for unary +: '{}'", type_name(value));
  if (value.real()) return value;
  return to_integer(value);
}

Value Binary::evaluate(Runtime& runtime) const {
  const Value l = runtime.evaluate(*left);
  return binary(op, l, runtime.evaluate(*right));
}

Value Concat::evaluate(Runtime& runtime) const {
  Output text;
  for (const ExpressionPtr& part : parts) {
    const Value value = runtime.evaluate(*part);
    if (const String* s = value.string()) {
      text.append(s->text);
    } else {
      text.append(to_text(value));
    }
  }
  return text.take();
}

Value Comparison::evaluate(Runtime& runtime) const {
  Value left = runtime.evaluate(*first);
  for (const auto& [op, operand] : rest) {
    Value right = runtime.evaluate(*operand);
    if (!compare(op, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value GetAttribute::evaluate(Runtime& runtime) const {
  return runtime.get_attribute(runtime.evaluate(*object), name);
}

Value GetItem::evaluate(Runtime& runtime) const {
  const Value container = runtime.evaluate(*object);
  return runtime.get_item(container, runtime.evaluate(*key));
}

Value GetSlice::evaluate(Runtime& runtime) const {
  const auto bound = [&](const ExpressionPtr& node) {
    return node ? runtime.evaluate(*node) : Value();
  };
  const Value container = runtime.evaluate(*object);
  const Value from = bound(start), to = bound(stop);
  return slice(container, from, to, bound(step));
}

Arguments CallArguments::evaluate(Runtime& runtime) const {
  Arguments values;
  values.positional.reserve(positional.size());
  for (const ExpressionPtr& node : positional) values.positional.push_back(runtime.evaluate(*node));
  for (const auto& [name, node] : named) {
    spend(values.named.size() / 4);
    if (values.find(name)) fail("keyword argument repeated: {}", name);
    values.named.emplace_back(name, runtime.evaluate(*node));
  }
  if (list) {
    const SequencePtr further = iterate(runtime.evaluate(*list));
    values.positional.insert(values.positional.end(), further->items.begin(), further->items.end());
  }
  if (dict) {
    const Value further = runtime.evaluate(*dict);
    if (!further.dict())
      fail("the argument after ** must be a mapping, not {}", type_name(further));
    for (const auto& [key, value] : further.dict()->entries) {
      if (!key.string()) fail("keywords must be strings");
      spend(values.named.size() / 4);
      if (values.find(key.string()->text)) {
        fail("got multiple values for keyword argument '{}'", key.string()->text);
      }
      values.named.emplace_back(key.string()->text, value);
    }
  }
  return values;
}

Value Call::evaluate(Runtime& runtime) const {
  // object.method(...) needs no bound method in between.
  const auto* attribute = dynamic_cast<const GetAttribute*>(callee.get());
  if (!attribute) {
    const Value function = runtime.evaluate(*callee);
    return runtime.call(function, arguments.evaluate(runtime));
  }
  const Value object = runtime.evaluate(*attribute->object);
  if (const Builtin* method = find_method(object, attribute->name->text)) {
    const Arguments values = arguments.evaluate(runtime);
    runtime.set_line(line);
    return call_builtin(*method, runtime, object, values);
  }
  const Value function = runtime.get_attribute(object, attribute->name);
  return runtime.call(function, arguments.evaluate(runtime));
}

Value Call::invoke(Runtime& runtime, Arguments values) const {
  const Value function = runtime.evaluate(*callee);
  Arguments own = arguments.evaluate(runtime);
  for (auto& argument : values.named) own.named.push_back(std::move(argument));
  return runtime.call(function, own);
}

Value Filter::evaluate(Runtime& runtime) const {
  if (!builtin) fail("No filter named '{}' found.", name);
  const Value value = runtime.evaluate(*input);
  const Arguments values = arguments.evaluate(runtime);
  runtime.set_line(line);
  return call_builtin(*builtin, runtime, value, values);
}

Value Test::evaluate(Runtime& runtime) const {
  if (!builtin) fail("No test named '{}' found.", name);
  const Value value = runtime.evaluate(*input);
  const Arguments values = arguments.evaluate(runtime);
  runtime.set_line(line);
  return call_builtin(*builtin, runtime, value, values);
}

}  // namespace sluice::jinja
