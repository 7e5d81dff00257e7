// JSON numbers between bounds, and multiples, as grammars over their decimal digits.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "text/grammar.h"

namespace sluice {

/// Holds every number of 38 digits.
using WideInteger = __int128;
WideInteger power_of_ten(int exponent);

/// A decimal number without exponent.
struct Decimal {
  bool negative = false;
  std::string whole;     // without leading zeros; "0" if none
  std::string fraction;  // without trailing zeros
  bool zero() const { return whole == "0" && fraction.empty(); }
};
/// Throws kUnsupported beyond 20 digits before or after the point; `where` starts the message.
Decimal to_decimal(const OrderedJson& number, const std::string& where);
/// Negative, 0 or positive as a < b, a == b, a > b.
int compare(const Decimal& a, const Decimal& b);

struct NumberBound {
  Decimal value;
  bool exclusive = false;
};
/// The smallest (`up`) or largest whole number that a bound allows.
WideInteger rounded(const NumberBound& bound, bool up);

struct NumberRange {
  std::optional<NumberBound> low, high;
};

/// Without bounds: up to 20 digits before and after the point, an exponent of up to two digits.
/// With bounds: no exponent. Nothing matches an empty range.
Expr number_grammar(GrammarBuilder& builder, const NumberRange& range);
Expr integer_grammar(GrammarBuilder& builder, const NumberRange& range);

/// step / 10^decimals
struct Divisor {
  int64_t step = 1;
  int decimals = 0;
};
/// Throws kInvalidInput if it is not above zero, kUnsupported beyond 18 digits or 15 decimals.
Divisor to_divisor(const OrderedJson& number, const std::string& where);
bool is_multiple(const Decimal& number, const Divisor& divisor);
/// The multiples in the range, written with at most the divisor's decimals, none if `integer`, and
/// no exponent. Throws kUnsupported if an automaton over remainders needs more than 20,000 states.
Expr multiple_grammar(GrammarBuilder& builder, const NumberRange& range, Divisor divisor,
                      bool integer, const std::string& where);

}  // namespace sluice
