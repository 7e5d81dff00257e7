// Filters on lists and dicts. Those that Python evaluates lazily return an iterator.
#include <algorithm>

#include "text/jinja_objects.h"
#include "text/jinja_text.h"

namespace sluice::jinja {
namespace {

Value missing(const char* message) { return Undefined{std::make_shared<String>(message), ""}; }

/// Reads "a.b.0" from a value, as the argument `attribute` of many filters means it.
class AttributePath {
 public:
  AttributePath(const Value& attribute, const Value* fallback) : fallback_(fallback) {
    if (attribute.is_none()) return;
    if (!attribute.string()) {
      parts_.push_back(attribute);
      return;
    }
    const std::string dot = ".";
    for (const std::string_view part : split(attribute.string()->text, &dot, -1)) {
      const bool is_index =
          !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == part.npos;
      parts_.push_back(is_index ? Value(std::stoi(std::string(part))) : Value(part));
    }
  }

  Value read(Runtime& runtime, Value value) const {
    for (const Value& part : parts_) {
      value = runtime.get_item(value, part);
      if (fallback_ && !fallback_->is_none() && value.is_undefined()) value = *fallback_;
    }
    return value;
  }

 private:
  std::vector<Value> parts_;
  const Value* fallback_;
};

Value argument_or_none(const Bound& arguments, size_t i) {
  return arguments.slot[i] ? arguments[i] : Value();
}

Value fold_case(const Value& value, bool case_sensitive) {
  return value.string() && !case_sensitive ? Value(to_lower(value.string()->text)) : value;
}

/// The items of `values` with what they are compared by.
struct Keyed {
  Value key, item;
};

std::vector<Keyed> with_keys(Runtime& runtime, const Value& values, const Value& attribute,
                             bool case_sensitive) {
  const AttributePath path(attribute, nullptr);
  std::vector<Keyed> keyed;
  const SequencePtr items = iterate(values);
  for (const Value& item : items->items) {
    keyed.push_back({fold_case(path.read(runtime, item), case_sensitive), item});
  }
  return keyed;
}

/// Stable in both directions, as Python's sorted() is.
void sort_keyed(std::vector<Keyed>& keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    return order(reverse ? b.key : a.key, reverse ? a.key : b.key) == -1;
  });
}

std::vector<Value> items_of(const std::vector<Keyed>& keyed) {
  std::vector<Value> items;
  for (const Keyed& k : keyed) items.push_back(k.item);
  return items;
}

Value filter_first(Runtime&, const Value& self, const Bound&) {
  const SequencePtr items = iterate(self);
  return items->items.empty() ? missing("No first item, sequence was empty.")
                              : items->items.front();
}

Value filter_last(Runtime&, const Value& self, const Bound&) {
  if (self.as<Iterator>()) fail("'{}' object is not reversible", type_name(self));
  const SequencePtr items = iterate(self);
  return items->items.empty() ? missing("No last item, sequence was empty.") : items->items.back();
}

Value filter_join(Runtime& runtime, const Value& self, const Bound& arguments) {
  const std::string separator = arguments.slot[0] ? to_text(arguments[0]) : "";
  const AttributePath path(argument_or_none(arguments, 1), nullptr);
  const SequencePtr items = iterate(self);
  Output text;
  for (size_t i = 0; i < items->items.size(); ++i) {
    if (i) text.append(separator);
    text.append(to_text(path.read(runtime, items->items[i])));
  }
  return text.take();
}

Value filter_reverse(Runtime&, const Value& self, const Bound&) {
  if (self.string()) return slice(self, Value(), Value(), -1);
  std::vector<Value> items = iterate(self)->items;
  std::reverse(items.begin(), items.end());
  return make_iterator(std::move(items));
}

/// Several attributes, separated by commas, sort by the first, then the second, ...
Value filter_sort(Runtime& runtime, const Value& self, const Bound& arguments) {
  const Value attribute = argument_or_none(arguments, 2);
  const bool case_sensitive = arguments.flag(1, false);
  std::vector<Keyed> keyed;
  if (attribute.string() && attribute.string()->text.find(',') != std::string::npos) {
    const std::string comma = ",";
    const SequencePtr items = iterate(self);
    for (const Value& item : items->items) {
      std::vector<Value> keys;
      for (const std::string_view part : split(attribute.string()->text, &comma, -1)) {
        keys.push_back(fold_case(AttributePath(part, nullptr).read(runtime, item), case_sensitive));
      }
      keyed.push_back({Value::list(std::move(keys)), item});
    }
  } else {
    keyed = with_keys(runtime, self, attribute, case_sensitive);
  }
  sort_keyed(keyed, arguments.flag(0, false));
  return Value::list(items_of(keyed));
}

Value filter_unique(Runtime& runtime, const Value& self, const Bound& arguments) {
  std::unordered_map<Value, bool, ValueHash, ValueEqual> seen;
  std::vector<Value> items;
  for (Keyed& keyed :
       with_keys(runtime, self, argument_or_none(arguments, 1), arguments.flag(0, false))) {
    if (seen.emplace(std::move(keyed.key), true).second) items.push_back(std::move(keyed.item));
  }
  return make_iterator(std::move(items));
}

template <int direction>
Value filter_extreme(Runtime& runtime, const Value& self, const Bound& arguments) {
  const std::vector<Keyed> keyed =
      with_keys(runtime, self, argument_or_none(arguments, 1), arguments.flag(0, false));
  if (keyed.empty()) return missing("No aggregated item, sequence was empty.");
  const Keyed* best = &keyed[0];
  for (const Keyed& candidate : keyed) {
    if (order(candidate.key, best->key) == direction) best = &candidate;
  }
  return best->item;
}

Value filter_sum(Runtime& runtime, const Value& self, const Bound& arguments) {
  const AttributePath path(argument_or_none(arguments, 0), nullptr);
  Value total = arguments.slot[1] ? arguments[1] : Value(0);
  if (total.string()) fail("sum() can't sum strings");
  const SequencePtr items = iterate(self);
  for (const Value& item : items->items) {
    total = binary(BinaryOp::kAdd, total, path.read(runtime, item));
  }
  return total;
}

const Builtin& filter_named(const Value& name) {
  const Builtin* filter = name.string() ? find_filter(name.string()->text) : nullptr;
  if (!filter) fail("No filter named {}.", repr(name));
  return *filter;
}

/// The arguments after the first `n`, for the filter or test they belong to.
Arguments further_arguments(const Arguments& all, size_t n) {
  Arguments rest;
  rest.named = all.named;
  if (all.positional.size() > n) {
    rest.positional.assign(all.positional.begin() + long(n), all.positional.end());
  }
  return rest;
}

Value filter_map(Runtime& runtime, const Value& self, const Bound& arguments) {
  const Arguments& all = *arguments.all;
  std::vector<Value> items;
  if (!truthy(self)) return make_iterator({});
  const SequencePtr values = iterate(self);
  const Value* attribute = all.find("attribute");
  if (all.positional.empty() && attribute) {
    const AttributePath path(*attribute, all.find("default"));
    for (const Value& value : values->items) items.push_back(path.read(runtime, value));
    return make_iterator(std::move(items));
  }
  if (all.positional.empty()) fail("map requires a filter argument");
  const Builtin& filter = filter_named(all.positional[0]);
  const Arguments rest = further_arguments(all, 1);
  for (const Value& value : values->items) {
    items.push_back(call_builtin(filter, runtime, value, rest));
  }
  return make_iterator(std::move(items));
}

/// select, reject, selectattr and rejectattr.
template <bool by_attribute, bool keep>
Value filter_select(Runtime& runtime, const Value& self, const Bound& arguments) {
  const Arguments& all = *arguments.all;
  constexpr size_t kFirst = by_attribute;
  if (all.positional.size() < kFirst) fail("missing parameter for attribute name");
  const AttributePath path(by_attribute ? all.positional[0] : Value(), nullptr);
  const Builtin* test = nullptr;
  if (all.positional.size() > kFirst) {
    const Value& name = all.positional[kFirst];
    test = name.string() ? find_test(name.string()->text) : nullptr;
    if (!test) fail("No test named {}.", repr(name));
  }
  const Arguments rest = further_arguments(all, kFirst + 1);
  std::vector<Value> items;
  if (!truthy(self)) return make_iterator({});
  const SequencePtr values = iterate(self);
  for (const Value& value : values->items) {
    const Value subject = path.read(runtime, value);
    if (truthy(test ? call_builtin(*test, runtime, subject, rest) : subject) == keep) {
      items.push_back(value);
    }
  }
  return make_iterator(std::move(items));
}

Value filter_batch(Runtime&, const Value& self, const Bound& arguments) {
  const auto n = size_t(std::max<int64_t>(arguments.integer(0, 1), 1));
  std::vector<Value> batches, batch;
  const SequencePtr items = iterate(self);
  for (const Value& item : items->items) {
    if (batch.size() == n) batches.push_back(Value::list(std::exchange(batch, {})));
    batch.push_back(item);
  }
  if (!batch.empty()) {
    if (arguments.given(1)) {
      const Charge filled((n - batch.size() > kMaxAliveBytes ? kMaxAliveBytes : n) * sizeof(Value));
      batch.resize(n, arguments[1]);
    }
    batches.push_back(Value::list(std::move(batch)));
  }
  return make_iterator(std::move(batches));
}

Value filter_slice(Runtime&, const Value& self, const Bound& arguments) {
  const std::vector<Value> items = iterate(self)->items;
  const int64_t n_slices = arguments.integer(0, 1);
  if (n_slices <= 0) fail("integer division or modulo by zero");
  const Charge charge(size_t(std::min<int64_t>(n_slices, int64_t(kMaxAliveBytes))) * sizeof(Value));
  const auto n = size_t(n_slices);
  const size_t per_slice = items.size() / n, n_longer = items.size() % n;
  std::vector<Value> slices;
  size_t begin = 0;
  for (size_t i = 0; i < n; ++i) {
    const size_t end = begin + per_slice + (i < n_longer);
    std::vector<Value> part(items.begin() + long(begin), items.begin() + long(end));
    if (arguments.given(1) && i >= n_longer) part.push_back(arguments[1]);
    slices.push_back(Value::list(std::move(part)));
    begin = end;
  }
  return make_iterator(std::move(slices));
}

Value filter_group_by(Runtime& runtime, const Value& self, const Bound& arguments) {
  const bool case_sensitive = arguments.flag(2, false);
  const Value fallback = argument_or_none(arguments, 1);
  const AttributePath path(arguments[0], &fallback);
  std::vector<Keyed> keyed;
  const SequencePtr items = iterate(self);
  for (const Value& item : items->items) {
    keyed.push_back({fold_case(path.read(runtime, item), case_sensitive), item});
  }
  sort_keyed(keyed, false);
  std::vector<Value> groups;
  for (size_t begin = 0, end = 0; begin < keyed.size(); begin = end) {
    std::vector<Value> members;
    for (; end < keyed.size() && equal(keyed[begin].key, keyed[end].key); ++end) {
      members.push_back(keyed[end].item);
    }
    std::vector<Value> group{path.read(runtime, keyed[begin].item),
                             Value::list(std::move(members))};
    groups.push_back(
        SequencePtr(std::make_shared<Sequence>(std::move(group), SequenceKind::kGroup)));
    if (end == begin) break;  // a key that differs from itself
  }
  return Value::list(std::move(groups));
}

Value filter_dict_sort(Runtime&, const Value& self, const Bound& arguments) {
  if (const Undefined* undefined = self.undefined()) fail_undefined(*undefined);
  if (!self.dict()) fail("'{}' object has no attribute 'items'", type_name(self));
  const std::string by = arguments.text(1, "key");
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : self.dict()->entries) {
    keyed.push_back({fold_case(by == "key" ? key : value, arguments.flag(0, false)),
                     Value::tuple({key, value})});
  }
  sort_keyed(keyed, arguments.flag(2, false));
  return Value::list(items_of(keyed));
}

Value filter_items(Runtime&, const Value& self, const Bound&) {
  if (self.is_undefined()) return make_iterator({});
  if (!self.dict()) fail("Can only get item pairs from a mapping.");
  return make_iterator(DictView(self.shared_dict(), DictView::Part::kItems).iterate()->items);
}

constexpr Builtin kFilters[] = {
    {"first", "", filter_first},
    {"last", "", filter_last},
    {"join", "d? attribute?", filter_join},
    {"reverse", "", filter_reverse},
    {"sort", "reverse? case_sensitive? attribute?", filter_sort},
    {"unique", "case_sensitive? attribute?", filter_unique},
    {"min", "case_sensitive? attribute?", filter_extreme<-1>},
    {"max", "case_sensitive? attribute?", filter_extreme<1>},
    {"sum", "attribute? start?", filter_sum},
    {"map", "*", filter_map},
    {"select", "*", filter_select<false, true>},
    {"reject", "*", filter_select<false, false>},
    {"selectattr", "*", filter_select<true, true>},
    {"rejectattr", "*", filter_select<true, false>},
    {"batch", "linecount fill_with?", filter_batch},
    {"slice", "slices fill_with?", filter_slice},
    {"groupby", "attribute default? case_sensitive?", filter_group_by},
    {"dictsort", "case_sensitive? by? reverse?", filter_dict_sort},
    {"items", "", filter_items},
};

}  // namespace

std::span<const Builtin> list_filters() { return kFilters; }

}  // namespace sluice::jinja
