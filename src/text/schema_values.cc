#include "text/schema_values.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "text/grammar_machine.h"
#include "text/regex_grammar.h"
#include "text/schema_merge.h"

namespace sluice {
namespace {

bool has_type(const OrderedJson& value, std::string_view type) {
  if (type == "integer") {
    return value.is_number_integer() ||
           (value.is_number_float() && value.get<double>() == std::floor(value.get<double>()));
  }
  if (type == "number") return value.is_number();
  return type == value.type_name();
}

class ValueFilter {
 public:
  ValueFilter(const OrderedJson& schema, int64_t& steps, const std::string& where)
      : schema_(schema), steps_(steps), where_(where) {
    range_ = number_range(schema, where);
    if (const OrderedJson* step = find("multipleOf")) {
      divisor_ = to_divisor(*step, where + "/multipleOf");
    }
  }

  bool fits(const OrderedJson& value) {
    refuse_unknown(value);
    if (value.is_number()) return fits_number(value);
    if (value.is_string()) return fits_string(value.get<std::string>());
    return true;
  }

 private:
  const OrderedJson* find(const char* keyword) const {
    const auto found = schema_.find(keyword);
    return found == schema_.end() ? nullptr : &*found;
  }

  /// Keywords of other types say nothing of the value.
  void refuse_unknown(const OrderedJson& value) const {
    if (!value.is_structured() && !(value.is_string() && find("format"))) return;
    for (const auto& [keyword, unused] : schema_.items()) {
      const OrderedJson one{{keyword, true}};
      const std::vector<std::string> types = implied_types(one);
      if (types.empty() || types[0] != value.type_name()) continue;
      if (value.is_string() && keyword != "format") continue;
      throw Error(ErrorCode::kUnsupported,
                  "{}/{}: expected no such keyword beside \"enum\" with a value of type {}", where_,
                  keyword, types[0]);
    }
  }

  bool fits_number(const OrderedJson& value) const {
    if (!range_.low && !range_.high && !divisor_) return true;
    const Decimal number = to_decimal(value, where_ + "/enum");
    const auto inside = [&](const std::optional<NumberBound>& bound, int sign) {
      if (!bound) return true;
      const int order = sign * compare(number, bound->value);
      return order > 0 || (order == 0 && !bound->exclusive);
    };
    return inside(range_.low, 1) && inside(range_.high, -1) &&
           (!divisor_ || is_multiple(number, *divisor_));
  }

  bool fits_string(const std::string& value) {
    const auto is_first = [](char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; };
    const auto length = static_cast<double>(std::count_if(value.begin(), value.end(), is_first));
    const OrderedJson* least = find("minLength");
    const OrderedJson* most = find("maxLength");
    if (least && length < least->get<double>()) return false;
    if (most && length > most->get<double>()) return false;
    return !find("pattern") || matches(value);
  }

  bool matches(const std::string& value) {
    if (!machine_) make_machine();
    const int64_t before = machine_->work();
    GrammarMachine::State state = machine_->start();
    for (const char byte : value) {
      state = machine_->step(state, static_cast<uint8_t>(byte));
      spend(1);
    }
    const bool complete = machine_->complete(state);
    spend(machine_->work() - before);
    return complete;
  }

  void make_machine() {
    const std::string path = where_ + "/pattern";
    GrammarBuilder builder(path);
    const Expr body =
        regex_grammar(builder, find("pattern")->get<std::string>(), {.what = path, .search = true});
    pattern_ = builder.build(builder.rule("pattern", body));
    spend(pattern_.n_nodes() + static_cast<int64_t>(pattern_.edges.size()));
    machine_.emplace(pattern_);
  }

  void spend(int64_t steps) {
    steps_ -= steps;
    if (steps_ < 0) {
      throw Error(
          ErrorCode::kUnsupported,
          "{}/pattern: expected patterns beside \"enum\" that are matched quickly, got more",
          where_);
    }
  }

  const OrderedJson& schema_;
  int64_t& steps_;
  const std::string& where_;
  NumberRange range_;
  std::optional<Divisor> divisor_;
  Grammar pattern_;
  std::optional<GrammarMachine> machine_;
};

}  // namespace

NumberRange number_range(const OrderedJson& schema, const std::string& where) {
  NumberRange range;
  const auto bound = [&](const char* keyword, std::optional<NumberBound>& result, int sign,
                         bool exclusive) {
    if (!schema.contains(keyword)) return;
    const NumberBound read{to_decimal(schema[keyword], where + "/" + keyword), exclusive};
    const int order = result ? sign * compare(read.value, result->value) : 1;
    if (order > 0 || (order == 0 && exclusive)) result = read;
  };
  bound("minimum", range.low, 1, false);
  bound("exclusiveMinimum", range.low, 1, true);
  bound("maximum", range.high, -1, false);
  bound("exclusiveMaximum", range.high, -1, true);
  return range;
}

std::vector<OrderedJson> fitting_values(const OrderedJson& schema,
                                        const std::vector<std::string>& types, int64_t& steps,
                                        const std::string& where) {
  ValueFilter filter(schema, steps, where);
  std::vector<OrderedJson> values;
  const auto add = [&](const OrderedJson& value) {
    const bool typed = std::any_of(types.begin(), types.end(),
                                   [&](const std::string& type) { return has_type(value, type); });
    if (typed && filter.fits(value)) values.push_back(value);
  };
  if (schema.contains("const")) {
    add(schema["const"]);
  } else {
    std::for_each(schema["enum"].begin(), schema["enum"].end(), add);
  }
  return values;
}

}  // namespace sluice
