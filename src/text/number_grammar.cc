#include "text/number_grammar.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"

namespace sluice {
namespace {

constexpr int kMaxDigits = 20;
using Integer = WideInteger;

Integer largest(int digits) { return power_of_ten(digits) - 1; }

std::string to_digits(Integer value) {
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(value % 10));
    value /= 10;
  } while (value > 0);
  std::reverse(digits.begin(), digits.end());
  return digits;
}

Integer to_integer(const std::string& digits) {
  Integer value = 0;
  for (const char c : digits) value = value * 10 + (c - '0');
  return value;
}

/// Builds the digits of numbers that are not negative.
class Digits {
 public:
  explicit Digits(GrammarBuilder& builder) : builder_(builder) {}

  Expr digit(int low, int high) {
    return builder_.characters(
        {{static_cast<char32_t>('0' + low), static_cast<char32_t>('0' + high)}});
  }
  Expr any(size_t n) {
    return builder_.repeat(digit(0, 9), static_cast<int>(n), static_cast<int>(n));
  }

  /// The whole numbers low..high, at most 20 digits.
  Expr whole(Integer low, Integer high) {
    std::vector<Expr> choices;
    for (int n = 1; n <= kMaxDigits && low <= high; ++n) {
      const Integer last = std::min(high, largest(n));
      if (low > last) continue;
      choices.push_back(same_length(to_digits(low), to_digits(last)));
      low = last + 1;
    }
    return choices.empty() ? builder_.literals({}) : builder_.choice(std::move(choices));
  }

  /// "" or "." and digits f with low <= 0.f <= high; no bound: anything.
  struct FractionBounds {
    std::optional<std::string> low, high;
    bool low_exclusive = false, high_exclusive = false;
  };
  Expr fraction(FractionBounds bounds) {
    drop_useless(bounds);
    std::vector<Expr> choices{builder_.sequence({builder_.literal("."), fraction_digits(bounds)})};
    if (may_stop(bounds)) choices.push_back(builder_.empty());
    return builder_.choice(std::move(choices));
  }

 private:
  Expr same_length(const std::string& low, const std::string& high) {
    size_t i = 0;
    while (i < low.size() && low[i] == high[i]) ++i;
    const Expr prefix = builder_.literal(low.substr(0, i));
    if (i == low.size()) return prefix;
    const int first = low[i] - '0', last = high[i] - '0';
    std::vector<Expr> choices{builder_.sequence({digit(first, first), at_least(low.substr(i + 1))}),
                              builder_.sequence({digit(last, last), at_most(high.substr(i + 1))})};
    if (last - first > 1) {
      choices.push_back(builder_.sequence({digit(first + 1, last - 1), any(low.size() - i - 1)}));
    }
    return builder_.sequence({prefix, builder_.choice(std::move(choices))});
  }

  Expr at_least(const std::string& digits) {
    std::vector<Expr> choices{builder_.literal(digits)};
    for (size_t i = 0; i < digits.size(); ++i) {
      if (digits[i] == '9') continue;
      choices.push_back(
          builder_.sequence({builder_.literal(digits.substr(0, i)), digit(digits[i] - '0' + 1, 9),
                             any(digits.size() - i - 1)}));
    }
    return builder_.choice(std::move(choices));
  }

  Expr at_most(const std::string& digits) {
    std::vector<Expr> choices{builder_.literal(digits)};
    for (size_t i = 0; i < digits.size(); ++i) {
      if (digits[i] == '0') continue;
      choices.push_back(
          builder_.sequence({builder_.literal(digits.substr(0, i)), digit(0, digits[i] - '0' - 1),
                             any(digits.size() - i - 1)}));
    }
    return builder_.choice(std::move(choices));
  }

  static void drop_useless(FractionBounds& bounds) {
    if (bounds.low && bounds.low->empty() && !bounds.low_exclusive) bounds.low.reset();
  }

  /// Whether zeros alone may follow. A bound of no digits is a bound of zero.
  static bool may_stop(const FractionBounds& b) {
    const bool above = !b.low || (b.low->empty() && !b.low_exclusive);
    const bool below = !b.high || !b.high->empty() || !b.high_exclusive;
    return above && below;
  }

  /// One digit or more.
  Expr fraction_digits(const FractionBounds& b) {
    if (!b.low && !b.high) return builder_.repeat(digit(0, 9), 1, kMaxDigits);
    const auto split = [](const std::optional<std::string>& bound) {
      const bool some = bound && !bound->empty();
      return std::pair(some ? bound->front() - '0' : 0, some ? bound->substr(1) : std::string());
    };
    const auto [low, low_rest] = split(b.low);
    const auto [high, high_rest] = split(b.high);
    std::vector<Expr> choices;
    for (int d = b.low ? low : 0; d <= (b.high ? high : 9); ++d) {
      FractionBounds rest = b;
      rest.low = b.low && d == low ? std::optional(low_rest) : std::nullopt;
      rest.high = b.high && d == high ? std::optional(high_rest) : std::nullopt;
      choices.push_back(builder_.sequence({digit(d, d), fraction_rest(rest)}));
    }
    return choices.empty() ? builder_.literals({}) : builder_.choice(std::move(choices));
  }

  Expr fraction_rest(FractionBounds b) {
    drop_useless(b);
    if (!b.low && !b.high) return builder_.repeat(digit(0, 9), 0, kMaxDigits);
    const std::string key = (b.low ? "L" + *b.low : "") + (b.high ? "H" + *b.high : "");
    if (const auto found = rests_.find(key); found != rests_.end()) {
      return builder_.call(found->second);
    }
    const RuleId rule = builder_.declare("");
    rests_.emplace(key, rule);
    std::vector<Expr> choices{fraction_digits(b)};
    if (may_stop(b)) choices.push_back(builder_.empty());
    builder_.define(rule, builder_.choice(std::move(choices)));
    return builder_.call(rule);
  }

  GrammarBuilder& builder_;
  std::map<std::string, RuleId> rests_;  // of one pair of bounds
};

using Bound = std::optional<NumberBound>;

/// The numbers low..high, neither of them negative.
Expr magnitude(GrammarBuilder& builder, const Bound& low, const Bound& high) {
  const Integer first = low ? to_integer(low->value.whole) : 0;
  const Integer last = high ? to_integer(high->value.whole) : largest(kMaxDigits);
  std::vector<Expr> choices;
  const auto add = [&](Integer from, Integer to, const Digits::FractionBounds& bounds) {
    if (from > to) return;
    Digits digits(builder);
    choices.push_back(builder.sequence({digits.whole(from, to), digits.fraction(bounds)}));
  };
  Digits::FractionBounds at_low, at_high;
  if (low) {
    at_low.low = low->value.fraction;
    at_low.low_exclusive = low->exclusive;
  }
  if (high) {
    at_high.high = high->value.fraction;
    at_high.high_exclusive = high->exclusive;
  }
  if (first == last) {
    at_low.high = at_high.high;
    at_low.high_exclusive = at_high.high_exclusive;
    add(first, last, at_low);
  } else {
    add(first, std::min(first, last), at_low);
    add(first + 1, last - 1, {});
    add(std::max(last, first + 1), last, at_high);
  }
  return choices.empty() ? builder.literals({}) : builder.choice(std::move(choices));
}

Bound negated(const Bound& bound) {
  Bound result = bound;
  result->value.negative = false;
  return result;
}

}  // namespace

WideInteger power_of_ten(int exponent) {
  WideInteger value = 1;
  for (int i = 0; i < exponent; ++i) value *= 10;
  return value;
}

Decimal to_decimal(const OrderedJson& number, const std::string& where) {
  std::string text =
      number.is_number_float() ? fmt::format("{}", number.get<double>()) : number.dump();
  Decimal result;
  if (number.is_number_float() && !std::isfinite(number.get<double>())) text = "1e99";
  if (text[0] == '-') {
    result.negative = true;
    text.erase(0, 1);
  }
  int exponent = 0;
  if (const size_t e = text.find('e'); e != std::string::npos) {
    exponent = std::stoi(text.substr(e + 1));
    text.resize(e);
  }
  const size_t point = std::min(text.find('.'), text.size());
  result.whole = text.substr(0, point);
  if (point < text.size()) result.fraction = text.substr(point + 1);
  if (std::abs(exponent) <= 2 * kMaxDigits) {
    for (; exponent > 0; --exponent) {
      result.whole += result.fraction.empty() ? '0' : result.fraction[0];
      if (!result.fraction.empty()) result.fraction.erase(0, 1);
    }
    for (; exponent < 0; ++exponent) {
      result.fraction.insert(0, 1, result.whole.empty() ? '0' : result.whole.back());
      if (!result.whole.empty()) result.whole.pop_back();
    }
  }
  result.whole.erase(0, std::min(result.whole.find_first_not_of('0'), result.whole.size()));
  if (result.whole.empty()) result.whole = "0";
  result.fraction.resize(result.fraction.find_last_not_of('0') + 1);
  if (result.whole.size() > kMaxDigits || result.fraction.size() > kMaxDigits || exponent != 0) {
    throw Error(ErrorCode::kUnsupported,
                "{}: expected at most {} digits before and after the point, got {}", where,
                kMaxDigits, number.dump());
  }
  if (result.zero()) result.negative = false;
  return result;
}

int compare(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  const int sign = a.negative ? -1 : 1;
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -sign : sign;
  const int whole = a.whole.compare(b.whole);
  const int order = whole != 0 ? whole : a.fraction.compare(b.fraction);
  return order < 0 ? -sign : order > 0 ? sign : 0;
}

WideInteger rounded(const NumberBound& bound, bool up) {
  Integer value = to_integer(bound.value.whole);
  const bool away = bound.value.negative != up;  // rounding goes away from zero
  if (!bound.value.fraction.empty()) {
    value += away ? 1 : 0;
  } else if (bound.exclusive) {
    value += away ? 1 : -1;
  }
  return bound.value.negative ? -value : value;
}

Expr number_grammar(GrammarBuilder& builder, const NumberRange& range) {
  const auto& [low, high] = range;
  if (low && high) {
    const int order = compare(low->value, high->value);
    if (order > 0 || (order == 0 && (low->exclusive || high->exclusive))) {
      return builder.literals({});
    }
  }
  std::vector<Expr> choices;
  if (!high || !high->value.negative) {
    choices.push_back(magnitude(builder, low && !low->value.negative ? low : Bound(), high));
  }
  if (!low || low->value.negative) {
    const bool below_zero = high && (high->value.negative || high->value.zero());
    const Bound nearest = below_zero ? negated(high) : Bound();
    const Bound farthest = low ? negated(low) : Bound();
    choices.push_back(
        builder.sequence({builder.literal("-"), magnitude(builder, nearest, farthest)}));
  }
  const Expr number = builder.choice(std::move(choices));
  if (low || high) return number;
  const CharSet digit = {{'0', '9'}};
  const Expr exponent = builder.sequence({builder.characters({{'e', 'e'}, {'E', 'E'}}),
                                          builder.literals({"", "+", "-"}),
                                          builder.repeat(builder.characters(digit), 1, 2)});
  return builder.sequence({number, builder.optional(exponent)});
}

Expr integer_grammar(GrammarBuilder& builder, const NumberRange& range) {
  const Integer limit = largest(kMaxDigits);
  const Integer low = range.low ? rounded(*range.low, true) : -limit;
  const Integer high = range.high ? rounded(*range.high, false) : limit;
  Digits digits(builder);
  std::vector<Expr> choices{digits.whole(std::max<Integer>(low, 0), high)};
  if (low < 0) {
    choices.push_back(
        builder.sequence({builder.literal("-"), digits.whole(std::max<Integer>(1, -high), -low)}));
  }
  return builder.choice(std::move(choices));
}

}  // namespace sluice
