// Filters on single values: defaults, conversions, numbers, JSON.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "text/jinja_objects.h"
#include "text/jinja_text.h"

namespace sluice::jinja {
namespace {

Value filter_default(Runtime&, const Value& self, const Bound& arguments) {
  const bool use_default = self.is_undefined() || (arguments.flag(1, false) && !truthy(self));
  if (!use_default) return self;
  return arguments.slot[0] ? arguments[0] : Value("");
}

Value filter_length(Runtime&, const Value& self, const Bound&) {
  const int64_t length = length_or_minus_one(self);
  if (length < 0) fail("object of type '{}' has no len()", type_name(self));
  return length;
}

Value filter_list(Runtime&, const Value& self, const Bound&) {
  const SequencePtr items = iterate(self);
  return Value::list(items->items);
}

Value filter_attr(Runtime& runtime, const Value& self, const Bound& arguments) {
  // Only attributes: what a dict holds under the name does not count.
  if (self.dict() && !find_method(self, arguments.text(0, ""))) {
    return Undefined{arguments[0].shared_string(), "dict"};
  }
  arguments.text(0, "");
  return runtime.get_attribute(self, arguments[0].shared_string());
}

/// Text of a number without white space at the ends and single underscores between digits.
std::optional<std::string> number_text(std::string_view text) {
  std::string out;
  const std::string_view trimmed = strip(text);
  for (size_t i = 0; i < trimmed.size(); ++i) {
    const auto is_digit_at = [&](size_t k) {
      return k < trimmed.size() && std::isxdigit(static_cast<unsigned char>(trimmed[k]));
    };
    if (trimmed[i] != '_') {
      out += trimmed[i];
    } else if (i == 0 || !is_digit_at(i - 1) || !is_digit_at(i + 1)) {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<Int> parse_integer(std::string_view text, int64_t base) {
  const std::optional<std::string> digits = number_text(text);
  if (!digits || (base != 0 && (base < 2 || base > 36))) return std::nullopt;
  size_t i = 0;
  const bool negative = digits->starts_with('-');
  if (negative || digits->starts_with('+')) ++i;
  const char letter =
      i + 1 < digits->size() && (*digits)[i] == '0' ? char((*digits)[i + 1] | 0x20) : ' ';
  const int prefix = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (prefix && (base == 0 || base == prefix)) {
    base = prefix;
    i += 2;
  }
  if (base == 0) base = 10;
  if (i == digits->size()) return std::nullopt;
  Int value = 0;
  for (; i < digits->size(); ++i) {
    const char c = (*digits)[i];
    const int digit = c >= '0' && c <= '9'                          ? c - '0'
                      : std::isalpha(static_cast<unsigned char>(c)) ? (c | 0x20) - 'a' + 10
                                                                    : 99;
    if (digit >= base) return std::nullopt;
    if (__builtin_mul_overflow(value, Int(base), &value) ||
        __builtin_add_overflow(value, Int(digit), &value)) {
      fail("the integer {} is too large", *digits);
    }
  }
  return negative ? -value : value;
}

std::optional<double> parse_real(std::string_view text) {
  const std::optional<std::string> digits = number_text(text);
  if (!digits || digits->empty()) return std::nullopt;
  // strtod also reads hexadecimal and nan(...), which Python does not.
  if (digits->find_first_of("xXpP(") != digits->npos || std::isspace(digits->front())) {
    return std::nullopt;
  }
  char* end = nullptr;
  const double value = std::strtod(digits->c_str(), &end);
  if (end != digits->c_str() + digits->size()) return std::nullopt;
  return value;
}

std::optional<Int> truncated(double value) {
  if (std::isnan(value)) return std::nullopt;
  if (std::abs(value) > 1e38) fail("cannot convert the float {} to an integer", format_real(value));
  return Int(value);
}

Value filter_int(Runtime&, const Value& self, const Bound& arguments) {
  if (const Undefined* undefined = self.undefined()) fail_undefined(*undefined);
  std::optional<Int> value;
  if (const String* s = self.string()) {
    value = parse_integer(s->text, arguments.integer(1, 10));
    if (!value) {
      const std::optional<double> real = parse_real(s->text);
      if (real && std::isfinite(*real)) value = truncated(*real);
    }
  } else if (is_number(self)) {
    value = self.real() ? truncated(*self.real()) : to_integer(self);
  }
  if (value) return *value;
  return arguments.slot[0] ? arguments[0] : Value(0);
}

Value filter_float(Runtime&, const Value& self, const Bound& arguments) {
  if (const Undefined* undefined = self.undefined()) fail_undefined(*undefined);
  if (is_number(self)) return to_double(self);
  if (const String* s = self.string()) {
    if (const std::optional<double> value = parse_real(s->text)) return *value;
  }
  return arguments.slot[0] ? arguments[0] : Value(0.0);
}

Value filter_abs(Runtime&, const Value& self, const Bound&) {
  if (const Undefined* undefined = self.undefined()) fail_undefined(*undefined);
  if (const double* d = self.real()) return std::abs(*d);
  if (!is_number(self)) fail("bad operand type for abs(): '{}'", type_name(self));
  return to_integer(self) < 0 ? negate(self) : Value(to_integer(self));
}

double round_half_even(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 300) return value;
  if (precision < 0) {
    if (precision < -308) return std::copysign(0.0, value);
    const double unit = std::pow(10.0, double(-precision));
    return std::nearbyint(value / unit) * unit;
  }
  return std::strtod(fmt::format("{:.{}f}", value, precision).c_str(), nullptr);
}

Value filter_round(Runtime&, const Value& self, const Bound& arguments) {
  if (const Undefined* undefined = self.undefined()) fail_undefined(*undefined);
  if (!is_number(self)) fail("type {} doesn't define __round__ method", type_name(self));
  const int64_t precision = arguments.integer(0, 0);
  const std::string method = arguments.text(1, "common");
  if (method == "common") {
    if (self.real()) return round_half_even(*self.real(), precision);
    if (precision >= 0) return to_integer(self);
    return Int(round_half_even(to_double(self), precision));
  }
  if (method != "ceil" && method != "floor") fail("method must be common, ceil or floor");
  const double unit = std::pow(10.0, double(precision));
  const double scaled = to_double(self) * unit;
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit;
}

Value filter_to_json(Runtime&, const Value& self, const Bound& arguments) {
  JsonStyle style;
  style.ascii = arguments.flag(0, false);
  style.sort_keys = arguments.flag(3, false);
  style.multiline = arguments.given(1);
  if (style.multiline) {
    style.item_separator.assign(1, ',');
    if (const String* s = arguments[1].string()) {
      style.indent_unit = s->text;
    } else {
      style.indent_unit =
          std::string(size_t(std::clamp<int64_t>(arguments.integer(1, 0), 0, 1000)), ' ');
    }
  }
  if (arguments.given(2)) {
    const SequencePtr separators = iterate(arguments[2]);
    if (separators->items.size() != 2) fail("tojson: expected two separators");
    style.item_separator = to_text(separators->items[0]);
    style.key_separator = to_text(separators->items[1]);
  }
  return dump_json(self, style);
}

constexpr Builtin kFilters[] = {
    {"default", "default_value? boolean?", filter_default},
    {"d", "default_value? boolean?", filter_default},
    {"length", "", filter_length},
    {"count", "", filter_length},
    {"list", "", filter_list},
    {"attr", "name", filter_attr},
    {"int", "default? base?", filter_int},
    {"float", "default?", filter_float},
    {"abs", "", filter_abs},
    {"round", "precision? method?", filter_round},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", filter_to_json},
};

}  // namespace

std::span<const Builtin> value_filters() { return kFilters; }

}  // namespace sluice::jinja
