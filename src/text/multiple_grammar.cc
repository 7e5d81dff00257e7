#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "base/error.h"
#include "text/automaton_explorer.h"
#include "text/number_grammar.h"

namespace sluice {
namespace {

constexpr int kMaxWholeDigits = 20;
constexpr int kMaxDecimals = 15;  // with the digits before the point, a WideInteger holds them
constexpr size_t kMaxDivisorDigits = 18;

/// The numbers low..high, not negative, in units of the last decimal, that a step divides. A state
/// of the automaton is how many digits are left, the remainder of those before (as the digits stand
/// for tens, hundreds, ...), and whether they still equal those of a bound. States from which no
/// multiple can be reached are never made.
class Multiples {
 public:
  Multiples(GrammarBuilder& builder, const Divisor& divisor, const std::string& where)
      : builder_(builder),
        divisor_(divisor),
        explorer_(where, "a divisor, such as one below 1000, with digits and remainders") {}

  Expr between(WideInteger low, WideInteger high) {
    for (int whole = 1; whole <= kMaxWholeDigits; ++whole) {
      const int length = whole + divisor_.decimals;
      const WideInteger first = whole == 1 ? 0 : power_of_ten(length - 1);
      const Bounds bounds{std::max(low, first), std::min(high, power_of_ten(length) - 1)};
      if (bounds.low > bounds.high) continue;
      bounds_[length] = bounds;
      go(Explorer::kStart, {.left = length, .at_low = true, .at_high = true, .length = length},
         builder_.empty());
    }
    explorer_.explore([this](const State& state, int32_t id) { expand(state, id); });
    return explorer_.build(builder_);
  }

 private:
  struct Bounds {
    WideInteger low, high;
  };
  struct State {
    int left = 0;
    int64_t remainder = 0;
    bool at_low = false, at_high = false;
    bool behind_point = false;  // only where all decimals are left
    int length = 0;             // of the number whose bounds count; 0: none do
    auto operator<=>(const State&) const = default;
  };
  using Explorer = AutomatonExplorer<State>;

  /// The bounds of the digits that are left.
  Bounds rest(const State& state) const {
    const WideInteger unit = power_of_ten(state.left);
    return {state.at_low ? bounds_.at(state.length).low % unit : 0,
            state.at_high ? bounds_.at(state.length).high % unit : unit - 1};
  }

  void go(int32_t from, State to, Expr label) {
    const Bounds bounds = rest(to);
    const WideInteger missing = (bounds.low + to.remainder) % divisor_.step;
    const WideInteger first = bounds.low + (missing == 0 ? 0 : divisor_.step - missing);
    if (first > bounds.high) return;
    to.at_low = bounds.low != 0;
    to.at_high = bounds.high != power_of_ten(to.left) - 1;
    if (!to.at_low && !to.at_high) to.length = 0;
    explorer_.go(from, to, label);
  }

  void expand(const State& state, int32_t id) {
    const bool at_point = state.left == divisor_.decimals && !state.behind_point;
    const bool may_stop = at_point || (state.left < divisor_.decimals);
    // The digits that are left would be zeros.
    if (may_stop && state.remainder == 0 && !state.at_low) {
      explorer_.end(id, builder_.empty());
    }
    if (state.left == 0) return;
    if (at_point) {
      State behind = state;
      behind.behind_point = true;
      return go(id, behind, builder_.literal("."));
    }
    const WideInteger unit = power_of_ten(state.left - 1);
    const Bounds bounds = rest(state);
    const auto first = static_cast<int>(bounds.low / unit);
    const auto last = static_cast<int>(bounds.high / unit);
    // Digits that lead to the same state are common where the step divides the unit.
    const bool divides = unit % divisor_.step == 0;
    for (int digit = first; digit <= last; ++digit) {
      State next = state;
      next.left = state.left - 1;
      next.behind_point = false;
      next.remainder = static_cast<int64_t>((state.remainder + unit * digit) % divisor_.step);
      next.at_low = state.at_low && digit == first;
      next.at_high = state.at_high && digit == last;
      int until = digit;
      if (divides && !next.at_low && !next.at_high) {
        until = state.at_high ? last - 1 : last;
      }
      go(id, next, digits(digit, until));
      digit = until;
    }
  }

  Expr digits(int low, int high) {
    const auto [entry, is_new] = digits_.try_emplace({low, high}, 0);
    if (is_new) {
      entry->second = builder_.characters(
          {{static_cast<char32_t>('0' + low), static_cast<char32_t>('0' + high)}});
    }
    return entry->second;
  }

  GrammarBuilder& builder_;
  const Divisor divisor_;
  Explorer explorer_;
  std::map<int, Bounds> bounds_;  // by length
  std::map<std::pair<int, int>, Expr> digits_;
};

/// In units of 10^-decimals.
NumberBound scaled(NumberBound bound, int decimals) {
  std::string& fraction = bound.value.fraction;
  const auto n = static_cast<size_t>(decimals);
  if (fraction.size() < n) fraction.resize(n, '0');
  bound.value.whole += fraction.substr(0, n);
  fraction.erase(0, n);
  return bound;
}

}  // namespace

Divisor to_divisor(const OrderedJson& number, const std::string& where) {
  const Decimal value = to_decimal(number, where);
  if (value.negative || value.zero()) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected a number above 0, got {}", where,
                number.dump());
  }
  std::string digits = value.whole + value.fraction;
  digits.erase(0, digits.find_first_not_of('0'));
  if (digits.size() > kMaxDivisorDigits || value.fraction.size() > kMaxDecimals) {
    throw Error(ErrorCode::kUnsupported, "{}: expected at most {} digits and {} decimals, got {}",
                where, kMaxDivisorDigits, kMaxDecimals, number.dump());
  }
  return {std::stoll(digits), static_cast<int>(value.fraction.size())};
}

bool is_multiple(const Decimal& number, const Divisor& divisor) {
  const auto decimals = static_cast<size_t>(divisor.decimals);
  if (number.fraction.size() > decimals) return false;
  std::string digits = number.whole + number.fraction;
  digits.append(decimals - number.fraction.size(), '0');
  WideInteger remainder = 0;
  for (const char digit : digits) remainder = (remainder * 10 + (digit - '0')) % divisor.step;
  return remainder == 0;
}

Expr multiple_grammar(GrammarBuilder& builder, const NumberRange& range, Divisor divisor,
                      bool integer, const std::string& where) {
  if (integer) {
    const WideInteger unit = power_of_ten(divisor.decimals);
    divisor.step /= std::gcd(divisor.step, static_cast<int64_t>(unit));
    divisor.decimals = 0;
  }
  const WideInteger limit = power_of_ten(kMaxWholeDigits + divisor.decimals) - 1;
  const auto bound = [&](const std::optional<NumberBound>& value, bool up) {
    return rounded(scaled(*value, divisor.decimals), up);
  };
  const WideInteger low = range.low ? bound(range.low, true) : -limit;
  const WideInteger high = range.high ? bound(range.high, false) : limit;
  std::vector<Expr> choices;
  if (high >= 0) {
    Multiples multiples(builder, divisor, where);
    choices.push_back(multiples.between(std::max<WideInteger>(low, 0), high));
  }
  if (low < 0) {
    Multiples multiples(builder, divisor, where);
    const Expr magnitude = multiples.between(std::max<WideInteger>(1, -high), -low);
    choices.push_back(builder.sequence({builder.literal("-"), magnitude}));
  }
  return choices.empty() ? builder.literals({}) : builder.choice(std::move(choices));
}

}  // namespace sluice
