#include "text/jinja_operators.h"

#include <algorithm>
#include <cmath>

#include "text/jinja_builtins.h"
#include "text/jinja_objects.h"
#include "text/jinja_text.h"

namespace sluice::jinja {
namespace {

constexpr const char* kSymbols[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

[[noreturn]] void fail_operands(BinaryOp op, const Value& left, const Value& right) {
  fail("unsupported operand type(s) for {}: '{}' and '{}'", kSymbols[int(op)], type_name(left),
       type_name(right));
}

[[noreturn]] void fail_overflow() { fail("an integer has more than 127 bits"); }

/// Rounds towards minus infinity, as Python does.
Int floor_divide(Int a, Int b) {
  if (b == -1) {
    Int negated;
    if (__builtin_sub_overflow(Int(0), a, &negated)) fail_overflow();
    return negated;
  }
  const Int quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}

Int floor_modulo(Int a, Int b) {
  if (b == -1) return 0;
  const Int rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_divide(double a, double b) {
  const double quotient = (a - floor_modulo(a, b)) / b;  // nearly whole
  return quotient == 0 ? std::copysign(0.0, a / b) : std::floor(quotient + 0.25);
}

Int integer_power(Int base, Int exponent) {
  Int result = 1;
  while (true) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    exponent >>= 1;
    if (exponent == 0) return result;
    if (__builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
}

Value integer_arithmetic(BinaryOp op, Int a, Int b) {
  Int result = 0;
  switch (op) {
    case BinaryOp::kAdd:
      if (__builtin_add_overflow(a, b, &result)) fail_overflow();
      return result;
    case BinaryOp::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) fail_overflow();
      return result;
    case BinaryOp::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) fail_overflow();
      return result;
    case BinaryOp::kDivide:
      if (b == 0) fail("division by zero");
      return double(a) / double(b);
    case BinaryOp::kFloorDivide:
      if (b == 0) fail("integer division or modulo by zero");
      return floor_divide(a, b);
    case BinaryOp::kModulo:
      if (b == 0) fail("integer modulo by zero");
      return floor_modulo(a, b);
    case BinaryOp::kPower:
      if (b >= 0)
        return a == 0 || a == 1 || a == -1 ? integer_power(a, b & 1    ? 1
                                                              : b == 0 ? 0
                                                                       : 2)
                                           : integer_power(a, b);
      if (a == 0) fail("0.0 cannot be raised to a negative power");
      return std::pow(double(a), double(b));
  }
  fail_overflow();
}

Value real_arithmetic(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSubtract:
      return a - b;
    case BinaryOp::kMultiply:
      return a * b;
    case BinaryOp::kDivide:
      if (b == 0) fail("float division by zero");
      return a / b;
    case BinaryOp::kFloorDivide:
      if (b == 0) fail("float floor division by zero");
      return floor_divide(a, b);
    case BinaryOp::kModulo:
      if (b == 0) fail("float modulo");
      return floor_modulo(a, b);
    case BinaryOp::kPower: {
      if (a == 0 && b < 0) fail("0.0 cannot be raised to a negative power");
      if (a < 0 && b != std::floor(b)) fail("complex numbers are not supported");
      const double power = std::pow(a, b);
      if (std::isinf(power) && std::isfinite(a) && std::isfinite(b)) fail("result too large");
      return power;
    }
  }
  fail_overflow();
}

/// Text that is safe stays safe: what is added to it is escaped.
Value add_strings(const Value& left, const Value& right) {
  const String &a = *left.string(), &b = *right.string();
  check_text_size(a.text.size() + b.text.size());
  if (a.safety == Safety::kPlain && b.safety == Safety::kPlain) return a.text + b.text;
  return Value(escaped_text(left) + escaped_text(right), Safety::kSafe);
}

Value add_sequences(const Value& left, const Value& right) {
  const Sequence &a = *left.sequence(), &b = *right.sequence();
  if (a.is_list() != b.is_list()) {
    fail("can only concatenate {0} (not \"{1}\") to {0}", type_name(left), type_name(right));
  }
  const Charge both((a.items.size() + b.items.size()) * sizeof(Value));
  std::vector<Value> items;
  items.reserve(a.items.size() + b.items.size());
  items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return SequencePtr(std::make_shared<Sequence>(std::move(items), a.kind));
}

Value repeat(const Value& value, Int count) {
  count = std::max<Int>(count, 0);
  constexpr Int kMax = Int(kMaxAliveBytes);
  if (const String* s = value.string()) {
    const Int bytes = s->text.empty() ? 0 : count > kMax ? kMax + 1 : count * Int(s->text.size());
    check_text_size(size_t(std::min(bytes, kMax + 1)));
    std::string out;
    out.reserve(size_t(bytes));
    for (Int i = 0; bytes && i < count; ++i) out += s->text;
    return Value(std::move(out), s->safety);
  }
  const Sequence& sequence = *value.sequence();
  const Int n = sequence.items.empty() ? 0
                : count > kMax         ? kMax
                                       : count * Int(sequence.items.size());
  const Charge result(size_t(std::min<Int>(n, kMax)) * sizeof(Value));
  std::vector<Value> items;
  items.reserve(size_t(n));
  for (Int i = 0; n && i < count; ++i) {
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  }
  return SequencePtr(std::make_shared<Sequence>(std::move(items), sequence.kind));
}

bool is_repeatable(const Value& value) { return value.string() || value.sequence(); }

int order_sequences(const Sequence& a, const Sequence& b) {
  const size_t n = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < n; ++i) {
    if (!equal(a.items[i], b.items[i])) return order(a.items[i], b.items[i]);
  }
  return a.items.size() < b.items.size() ? -1 : a.items.size() > b.items.size();
}

/// Bounds of a slice as Python clips them.
struct SliceBounds {
  int64_t start, stop, step;
};

SliceBounds clip(int64_t length, const Value& start, const Value& stop, const Value& step) {
  const int64_t stride = step.is_none() ? 1 : to_int64(step);
  if (stride == 0) fail("slice step cannot be zero");
  const int64_t low = stride < 0 ? -1 : 0;
  const int64_t high = stride < 0 ? length - 1 : length;
  const auto bound = [&](const Value& value, int64_t fallback) {
    if (value.is_none()) return fallback;
    int64_t i = to_int64(value);
    if (i < 0) i = i < -length ? low : i + length;
    return std::clamp(i, low, high);
  };
  return {bound(start, stride < 0 ? high : low), bound(stop, stride < 0 ? low : high),
          std::clamp(stride, -(length + 1), length + 1)};
}

/// Calls visit(i) for each index of a slice.
template <typename Visit>
void for_each_index(const SliceBounds& b, Visit visit) {
  for (int64_t i = b.start; b.step > 0 ? i < b.stop : i > b.stop; i += b.step) visit(size_t(i));
}

Value slice_string(const String& s, const SliceBounds& bounds) {
  const bool ascii = s.n_code_points == s.text.size();
  if (!ascii) spend(s.text.size() / 16);
  if (bounds.step == 1) {
    if (bounds.start >= bounds.stop) return Value(std::string(), s.safety);
    const size_t begin = ascii ? size_t(bounds.start) : byte_offset(s.text, size_t(bounds.start));
    const size_t n = size_t(bounds.stop - bounds.start);
    const std::string_view rest = std::string_view(s.text).substr(begin);
    return Value(std::string(rest.substr(0, ascii ? n : byte_offset(rest, n))), s.safety);
  }
  std::vector<size_t> offsets;
  const Charge index(s.n_code_points * sizeof(size_t));
  for (size_t i = 0; i < s.text.size(); next_code_point(s.text, i)) offsets.push_back(i);
  offsets.push_back(s.text.size());
  std::string out;
  for_each_index(bounds,
                 [&](size_t i) { out.append(s.text, offsets[i], offsets[i + 1] - offsets[i]); });
  return Value(std::move(out), s.safety);
}

}  // namespace

Value binary(BinaryOp op, const Value& left, const Value& right) {
  if (const Undefined* undefined = left.undefined()) fail_undefined(*undefined);
  if (op == BinaryOp::kModulo && left.string()) return format_percent(*left.string(), right);
  if (const Undefined* undefined = right.undefined()) fail_undefined(*undefined);
  if (is_number(left) && is_number(right)) {
    if (left.real() || right.real()) return real_arithmetic(op, to_double(left), to_double(right));
    return integer_arithmetic(op, to_integer(left), to_integer(right));
  }
  if (op == BinaryOp::kAdd) {
    if (left.string() && right.string()) return add_strings(left, right);
    if (left.sequence() && right.sequence()) return add_sequences(left, right);
    if (left.string()) fail("can only concatenate str (not \"{}\") to str", type_name(right));
  }
  if (op == BinaryOp::kMultiply) {
    if (is_repeatable(left) && (right.integer() || right.boolean())) {
      return repeat(left, to_integer(right));
    }
    if (is_repeatable(right) && (left.integer() || left.boolean())) {
      return repeat(right, to_integer(left));
    }
  }
  fail_operands(op, left, right);
}

Value negate(const Value& value) {
  if (const Undefined* undefined = value.undefined()) fail_undefined(*undefined);
  if (const double* d = value.real()) return -*d;
  if (!is_number(value)) fail("bad operand type for unary -: '{}'", type_name(value));
  return integer_arithmetic(BinaryOp::kSubtract, 0, to_integer(value));
}

int order(const Value& left, const Value& right) {
  spend(1);
  if (const Undefined* undefined = left.undefined()) fail_undefined(*undefined);
  if (const Undefined* undefined = right.undefined()) fail_undefined(*undefined);
  if (is_number(left) && is_number(right)) {
    if (left.real() || right.real()) {
      const double a = to_double(left), b = to_double(right);
      return std::isnan(a) || std::isnan(b) ? 2 : a < b ? -1 : a > b;
    }
    const Int a = to_integer(left), b = to_integer(right);
    return a < b ? -1 : a > b;
  }
  if (left.string() && right.string()) {  // the order of UTF-8 is that of code points
    const int c = left.string()->text.compare(right.string()->text);
    return c < 0 ? -1 : c > 0;
  }
  if (left.sequence() && right.sequence() &&
      left.sequence()->is_list() == right.sequence()->is_list()) {
    return order_sequences(*left.sequence(), *right.sequence());
  }
  fail("'<' not supported between instances of '{}' and '{}'", type_name(left), type_name(right));
}

bool compare(CompareOp op, const Value& left, const Value& right) {
  switch (op) {
    case CompareOp::kEqual:
      return equal(left, right);
    case CompareOp::kNotEqual:
      return !equal(left, right);
    case CompareOp::kIn:
      return contains(right, left);
    case CompareOp::kNotIn:
      return !contains(right, left);
    default:
      break;
  }
  const int c = order(left, right);
  if (c == 2) return false;
  switch (op) {
    case CompareOp::kLess:
      return c < 0;
    case CompareOp::kLessEqual:
      return c <= 0;
    case CompareOp::kGreater:
      return c > 0;
    default:
      return c >= 0;
  }
}

bool contains(const Value& container, const Value& item) {
  if (const String* s = container.string()) {
    if (!item.string()) {
      fail("'in <string>' requires string as left operand, not {}", type_name(item));
    }
    spend_search(s->text.size(), item.string()->text.size());
    return s->text.find(item.string()->text) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    ValueHash()(item);
    return dict->find(item) != nullptr;
  }
  if (const auto* range = container.as<Range>()) return range->contains(item);
  const SequencePtr items = iterate_or_null(container);
  if (!items) fail("argument of type '{}' is not iterable", type_name(container));
  return std::any_of(items->items.begin(), items->items.end(),
                     [&](const Value& value) { return equal(value, item); });
}

Value slice(const Value& sequence, const Value& start, const Value& stop, const Value& step) {
  if (const Undefined* undefined = sequence.undefined()) fail_undefined(*undefined);
  if (const String* s = sequence.string()) {
    return slice_string(*s, clip(int64_t(s->n_code_points), start, stop, step));
  }
  if (const Sequence* s = sequence.sequence()) {
    std::vector<Value> items;
    for_each_index(clip(int64_t(s->items.size()), start, stop, step),
                   [&](size_t i) { items.push_back(s->items[i]); });
    return SequencePtr(std::make_shared<Sequence>(std::move(items), s->kind));
  }
  if (const auto* r = sequence.as<Range>()) {
    const SliceBounds b = clip(r->n_items, start, stop, step);
    return ObjectPtr(std::make_shared<Range>(r->start + b.start * r->step,
                                             r->start + b.stop * r->step, b.step * r->step));
  }
  return Undefined{std::make_shared<String>("slice"), type_name(sequence)};
}

bool find_item(const Value& container, const Value& key, Value& item) {
  if (const Dict* dict = container.dict()) {
    if (key.sequence() && key.sequence()->is_list()) return false;
    if (key.dict()) return false;
    const Value* found = dict->find(key);
    if (found) item = *found;
    return found;
  }
  if (!key.integer() && !key.boolean()) return false;
  int64_t i = to_int64(key);
  const auto in_range = [&](int64_t length) {
    if (i < 0) i += length;
    return i >= 0 && i < length;
  };
  if (const Sequence* s = container.sequence()) {
    if (!in_range(int64_t(s->items.size()))) return false;
    item = s->items[size_t(i)];
    return true;
  }
  if (const String* s = container.string()) {
    if (!in_range(int64_t(s->n_code_points))) return false;
    item = slice_string(*s, {i, i + 1, 1});
    return true;
  }
  if (const auto* range = container.as<Range>()) {
    if (!in_range(range->n_items)) return false;
    item = range->start + i * range->step;
    return true;
  }
  return false;
}

}  // namespace sluice::jinja
