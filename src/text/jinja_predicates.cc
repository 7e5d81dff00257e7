// The tests of "x is ...".
#include "text/jinja_objects.h"
#include "text/jinja_text.h"

namespace sluice::jinja {
namespace {

template <CompareOp op>
Value test_compare(Runtime&, const Value& self, const Bound& arguments) {
  return compare(op, self, arguments[0]);
}

Value test_defined(Runtime&, const Value& self, const Bound&) { return !self.is_undefined(); }
Value test_undefined(Runtime&, const Value& self, const Bound&) { return self.is_undefined(); }
Value test_none(Runtime&, const Value& self, const Bound&) { return self.is_none(); }
Value test_boolean(Runtime&, const Value& self, const Bound&) { return self.boolean() != nullptr; }
Value test_true(Runtime&, const Value& self, const Bound&) {
  return self.boolean() && *self.boolean();
}
Value test_false(Runtime&, const Value& self, const Bound&) {
  return self.boolean() && !*self.boolean();
}
Value test_integer(Runtime&, const Value& self, const Bound&) { return self.integer() != nullptr; }
Value test_float(Runtime&, const Value& self, const Bound&) { return self.real() != nullptr; }
Value test_number(Runtime&, const Value& self, const Bound&) { return is_number(self); }
Value test_string(Runtime&, const Value& self, const Bound&) { return self.string() != nullptr; }
Value test_mapping(Runtime&, const Value& self, const Bound&) { return self.dict() != nullptr; }

Value test_sequence(Runtime&, const Value& self, const Bound&) {
  return self.is_undefined() || self.string() || self.sequence() || self.dict() || self.as<Range>();
}

Value test_iterable(Runtime&, const Value& self, const Bound&) {
  return self.is_undefined() || self.string() || self.sequence() || self.dict() ||
         self.as<Range>() || self.as<Iterator>() || self.as<DictView>() || self.as<Loop>();
}

Value test_callable(Runtime&, const Value& self, const Bound&) {
  return self.is_undefined() || (self.object() && self.object()->callable());
}

Value remainder(const Value& self, const Value& divisor) {
  return binary(BinaryOp::kModulo, self, divisor);
}

Value test_odd(Runtime&, const Value& self, const Bound&) { return equal(remainder(self, 2), 1); }
Value test_even(Runtime&, const Value& self, const Bound&) { return equal(remainder(self, 2), 0); }
Value test_divisible_by(Runtime&, const Value& self, const Bound& arguments) {
  return equal(remainder(self, arguments[0]), 0);
}

/// str.islower and str.isupper: some letter has case, and none has the other case.
bool has_only_case(const Value& self, bool (*is_case)(char32_t)) {
  const std::string text = to_text(self);
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = next_code_point(text, i);
    if (!is_cased(c)) continue;
    if (!is_case(c)) return false;
    found = true;
  }
  return found;
}

Value test_lower(Runtime&, const Value& self, const Bound&) {
  return has_only_case(self, is_lower);
}
Value test_upper(Runtime&, const Value& self, const Bound&) {
  return has_only_case(self, is_upper);
}

Value test_same_as(Runtime&, const Value& self, const Bound& arguments) {
  const Value& other = arguments[0];
  if (self.kind() != other.kind()) return false;
  if (self.string() || !self.identity()) return equal(self, other);  // small values are shared
  return self.identity() == other.identity();
}

Value test_escaped(Runtime&, const Value& self, const Bound&) {
  return self.string() && self.string()->safety == Safety::kSafe;
}

Value test_filter(Runtime&, const Value& self, const Bound&) {
  return self.string() && find_filter(self.string()->text);
}

Value test_test(Runtime&, const Value& self, const Bound&) {
  return self.string() && find_test(self.string()->text);
}

constexpr Builtin kTests[] = {
    {"defined", "", test_defined},
    {"undefined", "", test_undefined},
    {"none", "", test_none},
    {"boolean", "", test_boolean},
    {"true", "", test_true},
    {"false", "", test_false},
    {"integer", "", test_integer},
    {"float", "", test_float},
    {"number", "", test_number},
    {"string", "", test_string},
    {"mapping", "", test_mapping},
    {"sequence", "", test_sequence},
    {"iterable", "", test_iterable},
    {"callable", "", test_callable},
    {"odd", "", test_odd},
    {"even", "", test_even},
    {"divisibleby", "num", test_divisible_by},
    {"lower", "", test_lower},
    {"upper", "", test_upper},
    {"sameas", "other", test_same_as},
    {"escaped", "", test_escaped},
    {"filter", "", test_filter},
    {"test", "", test_test},
    {"in", "seq", test_compare<CompareOp::kIn>},
    {"==", "other", test_compare<CompareOp::kEqual>},
    {"eq", "other", test_compare<CompareOp::kEqual>},
    {"equalto", "other", test_compare<CompareOp::kEqual>},
    {"!=", "other", test_compare<CompareOp::kNotEqual>},
    {"ne", "other", test_compare<CompareOp::kNotEqual>},
    {">", "other", test_compare<CompareOp::kGreater>},
    {"gt", "other", test_compare<CompareOp::kGreater>},
    {"greaterthan", "other", test_compare<CompareOp::kGreater>},
    {">=", "other", test_compare<CompareOp::kGreaterEqual>},
    {"ge", "other", test_compare<CompareOp::kGreaterEqual>},
    {"<", "other", test_compare<CompareOp::kLess>},
    {"lt", "other", test_compare<CompareOp::kLess>},
    {"lessthan", "other", test_compare<CompareOp::kLess>},
    {"<=", "other", test_compare<CompareOp::kLessEqual>},
    {"le", "other", test_compare<CompareOp::kLessEqual>},
};

}  // namespace

std::span<const Builtin> tests() { return kTests; }

}  // namespace sluice::jinja
