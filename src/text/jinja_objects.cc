#include "text/jinja_objects.h"

#include <algorithm>

namespace sluice::jinja {
namespace {

constexpr int64_t kMaxRange = 100000;  // as in jinja2's sandbox

Value loop_cycle(Runtime&, const Value& self, const Bound& arguments) {
  const auto& choices = arguments.all->positional;
  if (choices.empty()) fail("no items for cycling given");
  return choices[self.as<Loop>()->index0 % choices.size()];
}

Value loop_changed(Runtime& runtime, const Value& self, const Bound& arguments) {
  auto* loop = self.as<Loop>();
  const std::vector<Value>& now = arguments.all->positional;
  const bool same = loop->has_changed_before && now.size() == loop->last_changed.size() &&
                    std::equal(now.begin(), now.end(), loop->last_changed.begin(), equal);
  if (!loop->has_changed_before) runtime.keep(self.shared_object());
  loop->has_changed_before = true;
  loop->last_changed = now;
  return !same;
}

Value cycler_next(Runtime&, const Value& self, const Bound&) {
  auto* cycler = self.as<Cycler>();
  const Value item = cycler->items[cycler->position];
  cycler->position = (cycler->position + 1) % cycler->items.size();
  return item;
}

Value cycler_reset(Runtime&, const Value& self, const Bound&) {
  self.as<Cycler>()->position = 0;
  return None{};
}

constexpr Builtin kLoopMethods[] = {{"cycle", "*", loop_cycle}, {"changed", "*", loop_changed}};
constexpr Builtin kCyclerMethods[] = {{"next", "", cycler_next}, {"reset", "", cycler_reset}};

const Builtin* find_in(std::span<const Builtin> table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Builtin& builtin) { return builtin.name == name; });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

Range::Range(int64_t first, int64_t last, int64_t stride)
    : start(first), stop(last), step(stride), n_items(0) {
  if (step == 0) fail("range() arg 3 must not be zero");
  const Int distance = step > 0 ? Int(stop) - start : Int(start) - stop;
  const Int stride_size = step > 0 ? Int(step) : -Int(step);
  const Int n = distance <= 0 ? 0 : (distance + stride_size - 1) / stride_size;
  if (n > kMaxRange) fail("range too big: the sandbox blocks ranges larger than {}", kMaxRange);
  n_items = int64_t(n);
}

std::string Range::repr() const {
  if (step == 1) return fmt::format("range({}, {})", start, stop);
  return fmt::format("range({}, {}, {})", start, stop, step);
}

SequencePtr Range::iterate() {
  std::vector<Value> items;
  items.reserve(size_t(n_items));
  for (int64_t i = 0; i < n_items; ++i) items.emplace_back(start + i * step);
  return std::make_shared<Sequence>(std::move(items), SequenceKind::kList);
}

bool Range::contains(const Value& value) const {
  if (!is_number(value)) return false;
  const double number = to_double(value);
  const double steps = (number - double(start)) / double(step);
  return steps >= 0 && steps < double(n_items) && steps == double(int64_t(steps));
}

Iterator::Iterator(std::vector<Value> values, const char* python_type)
    : Object(depth_of(values)),
      items_(std::make_shared<Sequence>(std::move(values), SequenceKind::kList)),
      python_type_(python_type) {}

SequencePtr Iterator::iterate() {
  return std::exchange(items_,
                       std::make_shared<Sequence>(std::vector<Value>(), SequenceKind::kList));
}

Value make_iterator(std::vector<Value> values) {
  return ObjectPtr(std::make_shared<Iterator>(std::move(values)));
}

const char* DictView::type_name() const {
  return part == Part::kKeys ? "dict_keys" : part == Part::kValues ? "dict_values" : "dict_items";
}

std::string DictView::repr() const {
  const SequencePtr items = const_cast<DictView*>(this)->iterate();
  return fmt::format("{}({})", type_name(), jinja::repr(Value(items)));
}

SequencePtr DictView::iterate() {
  std::vector<Value> items;
  items.reserve(dict->entries.size());
  for (const auto& [key, value] : dict->entries) {
    items.push_back(part == Part::kKeys     ? key
                    : part == Part::kValues ? value
                                            : Value::tuple({key, value}));
  }
  return std::make_shared<Sequence>(std::move(items), SequenceKind::kList);
}

Namespace::Namespace(std::vector<std::pair<StringPtr, Value>> initial)
    : attributes(std::move(initial)), initial_charge_(attributes.size() * sizeof(attributes[0])) {}

std::string Namespace::repr() const {
  std::string out = "<Namespace {";
  for (size_t i = 0; i < attributes.size(); ++i) {
    out += fmt::format("{}{}: {}", i ? ", " : "", jinja::repr(Value(attributes[i].first)),
                       jinja::repr(attributes[i].second));
  }
  return out + "}>";
}

void Namespace::set(const StringPtr& name, Value value) {
  spend(attributes.size() / 8);
  for (auto& [known, held] : attributes) {
    if (known->text == name->text) {
      held = std::move(value);
      return;
    }
  }
  attributes.emplace_back(name, std::move(value));
}

const Value* Namespace::find(std::string_view name) const {
  spend(attributes.size() / 8);
  for (const auto& [known, value] : attributes) {
    if (known->text == name) return &value;
  }
  return nullptr;
}

std::string Macro::repr() const { return fmt::format("<Macro '{}'>", callable_->name->text); }

bool Loop::find(std::string_view name, Value& value) const {
  const size_t n = items->items.size();
  const auto missing = [](const char* message) {
    return Value(Undefined{std::make_shared<String>(message), ""});
  };
  if (name == "index") {
    value = index0 + 1;
  } else if (name == "index0") {
    value = index0;
  } else if (name == "first") {
    value = index0 == 0;
  } else if (name == "last") {
    value = index0 + 1 >= n;
  } else if (name == "length") {
    value = n;
  } else if (name == "revindex") {
    value = n - index0;
  } else if (name == "revindex0") {
    value = n - index0 - 1;
  } else if (name == "depth") {
    value = depth0 + 1;
  } else if (name == "depth0") {
    value = depth0;
  } else if (name == "previtem") {
    value = index0 > 0 ? items->items[index0 - 1] : missing("there is no previous item");
  } else if (name == "nextitem") {
    value = index0 + 1 < n ? items->items[index0 + 1] : missing("there is no next item");
  } else {
    return false;
  }
  return true;
}

const Builtin* find_object_method(const Object& object, std::string_view name) {
  if (dynamic_cast<const Loop*>(&object)) return find_in(kLoopMethods, name);
  if (dynamic_cast<const Cycler*>(&object)) return find_in(kCyclerMethods, name);
  return nullptr;
}

bool find_object_attribute(const Value& object, std::string_view name, Value& value) {
  if (const Sequence* s = object.sequence(); s && s->kind == SequenceKind::kGroup) {
    if (name != "grouper" && name != "list") return false;
    value = s->items[name == "list"];
    return true;
  }
  if (!object.object()) return false;
  if (const auto* ns = object.as<Namespace>()) {
    const Value* found = ns->find(name);
    if (found) value = *found;
    return found;
  }
  if (const auto* loop = object.as<Loop>()) return loop->find(name, value);
  if (const auto* cycler = object.as<Cycler>(); cycler && name == "current") {
    value = cycler->items[cycler->position];
    return true;
  }
  if (const auto* macro = object.as<Macro>(); macro && name == "name") {
    value = macro->callable_->name;
    return true;
  }
  const auto* range = object.as<Range>();
  if (!range || (name != "start" && name != "stop" && name != "step")) return false;
  value = name == "start" ? range->start : name == "stop" ? range->stop : range->step;
  return true;
}

}  // namespace sluice::jinja
