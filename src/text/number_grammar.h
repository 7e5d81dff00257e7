// JSON numbers between bounds, as grammars over their decimal digits.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "text/grammar.h"

namespace sluice {

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
struct NumberRange {
  std::optional<NumberBound> low, high;
};

/// Without bounds: up to 20 digits before and after the point, an exponent of up to two digits.
/// With bounds: no exponent. Nothing matches an empty range.
Expr number_grammar(GrammarBuilder& builder, const NumberRange& range);
Expr integer_grammar(GrammarBuilder& builder, const NumberRange& range);

}  // namespace sluice
