// Python's operators on template values.
#pragma once

#include "text/jinja_value.h"

namespace sluice::jinja {

enum class BinaryOp { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
enum class CompareOp { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };

Value binary(BinaryOp op, const Value& left, const Value& right);
Value negate(const Value& value);
bool compare(CompareOp op, const Value& left, const Value& right);
bool contains(const Value& container, const Value& item);
/// -1, 0 or 1; 2 when a NaN is involved. Throws for types without an order.
int order(const Value& left, const Value& right);

/// sequence[start:stop:step]; none stands for an absent bound.
Value slice(const Value& sequence, const Value& start, const Value& stop, const Value& step);
/// sequence[index] or dict[key]; false when there is no such item.
bool find_item(const Value& container, const Value& key, Value& item);

}  // namespace sluice::jinja
