#include "text/jinja_objects.h"

namespace sluice::jinja {
namespace {

/// The text of a block, through its filters.
Value filtered(Runtime& runtime, const ExpressionPtr& filter, std::string text) {
  if (!filter) return text;
  // The innermost filter has no input of its own; it reads the name that stands for the block.
  const Runtime::Enter enter(runtime);
  runtime.assign(Symbols::kBlockText, std::move(text));
  return runtime.evaluate(*filter);
}

}  // namespace

void Target::assign(Runtime& runtime, const Value& value) const {
  if (is_tuple) {
    const SequencePtr values = iterate(value);
    if (values->items.size() != items.size()) {
      fail("expected {} values to unpack, got {}", items.size(), values->items.size());
    }
    for (size_t i = 0; i < items.size(); ++i) items[i].assign(runtime, values->items[i]);
    return;
  }
  if (!attribute) return runtime.assign(symbol, value);
  const Value owner = runtime.look_up(symbol, name);
  auto* ns = owner.as<Namespace>();
  if (!ns) fail("cannot assign attribute on non-namespace object '{}'", name->text);
  ns->set(attribute, value);
}

Flow Data::execute(Runtime&, Output& out) const {
  out.append(text);
  return Flow::kNext;
}

Flow Print::execute(Runtime& runtime, Output& out) const {
  for (const ExpressionPtr& node : values) {
    const Value value = runtime.evaluate(*node);
    if (const String* s = value.string()) {
      out.append(s->text);
    } else {
      out.append(to_text(value));
    }
  }
  return Flow::kNext;
}

Flow If::execute(Runtime& runtime, Output& out) const {
  for (const auto& [condition, body] : branches) {
    if (truthy(runtime.evaluate(*condition))) return runtime.execute(body, out);
  }
  return runtime.execute(otherwise, out);
}

SequencePtr For::select(Runtime& runtime, const Value& values) const {
  SequencePtr items = iterate(values);
  if (!condition) return items;
  std::vector<Value> kept;
  for (const Value& item : items->items) {
    const Runtime::Enter enter(runtime);
    target.assign(runtime, item);
    if (truthy(runtime.evaluate(*condition))) kept.push_back(item);
  }
  return std::make_shared<Sequence>(std::move(kept), SequenceKind::kList);
}

void For::run(Runtime& runtime, const Value& values, int depth0, Output& out) const {
  if (recursive) runtime.keep(runtime.scope());
  const auto loop = std::make_shared<Loop>(*this, select(runtime, values), depth0,
                                           recursive ? runtime.scope() : nullptr);
  const std::vector<Value>& items = loop->items->items;
  for (size_t i = 0; i < items.size(); ++i) {
    spend(3);  // a scope costs more than an expression
    const Runtime::Enter enter(runtime);
    loop->index0 = i;
    target.assign(runtime, items[i]);
    runtime.assign(Symbols::kLoop, ObjectPtr(loop));
    if (runtime.execute(body, out) == Flow::kBreak) break;
  }
  if (items.empty()) {
    const Runtime::Enter enter(runtime);
    runtime.execute(otherwise, out);
  }
}

Flow For::execute(Runtime& runtime, Output& out) const {
  run(runtime, runtime.evaluate(*iterable), 0, out);
  return Flow::kNext;
}

Flow Set::execute(Runtime& runtime, Output&) const {
  target.assign(runtime, runtime.evaluate(*value));
  return Flow::kNext;
}

Flow SetBlock::execute(Runtime& runtime, Output&) const {
  Output text;
  Flow flow;
  {
    const Runtime::Enter enter(runtime);
    flow = runtime.execute(body, text);
  }
  if (flow == Flow::kNext) target.assign(runtime, filtered(runtime, filter, text.take()));
  return flow;
}

Flow With::execute(Runtime& runtime, Output& out) const {
  std::vector<Value> evaluated;
  for (const auto& [target, expression] : values)
    evaluated.push_back(runtime.evaluate(*expression));
  const Runtime::Enter enter(runtime);
  for (size_t i = 0; i < values.size(); ++i) values[i].first.assign(runtime, evaluated[i]);
  return runtime.execute(body, out);
}

Flow FilterBlock::execute(Runtime& runtime, Output& out) const {
  Output text;
  {
    const Runtime::Enter enter(runtime);
    const Flow flow = runtime.execute(body, text);
    if (flow != Flow::kNext) return flow;
  }
  out.append(to_text(filtered(runtime, filter, text.take())));
  return Flow::kNext;
}

Flow MacroDefinition::execute(Runtime& runtime, Output&) const {
  runtime.keep(runtime.scope());
  runtime.assign(symbol, ObjectPtr(std::make_shared<Macro>(&callable, runtime.scope())));
  return Flow::kNext;
}

Flow CallBlock::execute(Runtime& runtime, Output& out) const {
  runtime.keep(runtime.scope());
  Arguments extra;
  extra.named.emplace_back("caller", ObjectPtr(std::make_shared<Macro>(&caller, runtime.scope())));
  out.append(to_text(call->invoke(runtime, std::move(extra))));
  return Flow::kNext;
}

Flow Jump::execute(Runtime&, Output&) const { return flow; }

Flow ScopedBody::execute(Runtime& runtime, Output& out) const {
  const Runtime::Enter enter(runtime);
  const size_t begin = out.text().size();
  runtime.execute(body, out);
  if (is_generation && &out == runtime.outermost) {
    runtime.generation.emplace_back(begin, out.text().size());
  }
  return Flow::kNext;
}

Flow Unsupported::execute(Runtime&, Output&) const {
  fail("'{}' needs other templates, which are not available", tag);
}

}  // namespace sluice::jinja
