#include "text/json_parts.h"

#include <algorithm>
#include <deque>
#include <map>

#include "text/number_grammar.h"
#include "text/regex_grammar.h"
#include "text/unicode.h"

namespace sluice {

Expr JsonParts::once(std::optional<RuleId>& rule, const char* name, Expr (JsonParts::*make)()) {
  if (!rule) {
    rule = builder_.declare(name);  // first: values are made of values
    builder_.define(*rule, (this->*make)());
  }
  return builder_.call(*rule);
}

Expr JsonParts::space() { return once(space_, "space", &JsonParts::make_space); }
Expr JsonParts::string() { return once(string_, "string", &JsonParts::make_string); }
Expr JsonParts::character() { return once(character_, "character", &JsonParts::make_character); }
Expr JsonParts::number() { return once(number_, "number", &JsonParts::make_number); }
Expr JsonParts::integer() { return once(integer_, "integer", &JsonParts::make_integer); }
Expr JsonParts::value() { return once(value_, "value", &JsonParts::make_value); }
Expr JsonParts::object() { return once(object_, "object", &JsonParts::make_object); }
Expr JsonParts::array() { return once(array_, "array", &JsonParts::make_array); }

Expr JsonParts::make_space() {
  const Expr blank = builder_.literal(" ");
  return builder_.choice(
      {builder_.empty(), blank,
       builder_.sequence({builder_.literal("\n"), builder_.repeat(blank, 0, 32)})});
}

Expr JsonParts::make_character() {
  const CharSet hex = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  const auto digits = [&](int n) { return builder_.repeat(builder_.characters(hex), n, n); };
  const CharSet d = {{'D', 'D'}, {'d', 'd'}};
  const Expr unit = builder_.choice(
      {builder_.sequence(
           {builder_.characters({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}}),
            digits(3)}),
       builder_.sequence({builder_.characters(d), builder_.characters({{'0', '7'}}), digits(2)}),
       // A surrogate pair: halves do not come alone.
       builder_.sequence({builder_.characters(d),
                          builder_.characters({{'8', '9'}, {'A', 'B'}, {'a', 'b'}}), digits(2),
                          builder_.literal("\\u"), builder_.characters(d),
                          builder_.characters({{'C', 'F'}, {'c', 'f'}}), digits(2)})});
  const Expr escape =
      builder_.choice({builder_.literals({"\"", "\\", "/", "b", "f", "n", "r", "t"}),
                       builder_.sequence({builder_.literal("u"), unit})});
  return builder_.choice({builder_.characters(complement({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}})),
                          builder_.sequence({builder_.literal("\\"), escape})});
}

Expr JsonParts::make_string() { return quoted(builder_.repeat(character(), 0, -1)); }
Expr JsonParts::make_number() { return number_grammar(builder_, {}); }
Expr JsonParts::make_integer() { return integer_grammar(builder_, {}); }

Expr JsonParts::make_value() {
  return builder_.choice(
      {string(), number(), object(), array(), builder_.literals({"true", "false", "null"})});
}

Expr JsonParts::make_object() { return braced(list(member(string(), value()), 0, -1)); }
Expr JsonParts::make_array() { return bracketed(list(value(), 0, -1)); }

Expr JsonParts::quoted(Expr body) {
  const Expr quote = builder_.literal("\"");
  return builder_.sequence({quote, body, quote});
}

Expr JsonParts::member(Expr name, Expr value) {
  return builder_.sequence({name, builder_.literal(":"), space(), value});
}

Expr JsonParts::comma() { return builder_.sequence({builder_.literal(","), space()}); }

Expr JsonParts::list(Expr element, int min, int max) {
  if (max == 0) return min > 0 ? builder_.literals({}) : builder_.empty();
  const Expr rest = builder_.repeat(builder_.sequence({comma(), element}), std::max(min - 1, 0),
                                    max < 0 ? -1 : max - 1);
  const Expr some = builder_.sequence({element, rest});
  return min > 0 ? some : builder_.optional(some);
}

Expr JsonParts::braced(Expr body) {
  return builder_.sequence({builder_.literal("{"), space(), body, space(), builder_.literal("}")});
}

Expr JsonParts::bracketed(Expr body) {
  return builder_.sequence({builder_.literal("["), space(), body, space(), builder_.literal("]")});
}

struct JsonParts::NameTree {
  std::map<char32_t, NameTree*> children;
  bool ends = false;
  RuleId rule = 0;
};

/// One rule per prefix of a name: the string may end where no name does, go on along a name, or
/// leave all names. Escapes that could spell a name in another way are left out.
Expr JsonParts::string_except(const std::vector<std::string>& names) {
  std::deque<NameTree> nodes(1);
  for (const std::string& name : names) {
    NameTree* node = &nodes.front();
    for_each_char(name, [&](char32_t c, std::string_view) {
      NameTree*& child = node->children[c];
      if (!child) child = &nodes.emplace_back();
      node = child;
    });
    node->ends = true;
  }
  for (NameTree& node : nodes) node.rule = builder_.declare("name");
  const Expr rest = builder_.call(
      builder_.rule("rest", builder_.repeat(json_characters(builder_, complement({})), 0, -1)));
  for (const NameTree& node : nodes) {
    std::vector<Expr> choices;
    CharSet known;
    for (const auto& [c, child] : node.children) {
      known.emplace_back(c, c);
      choices.push_back(
          builder_.sequence({json_characters(builder_, {{c, c}}), builder_.call(child->rule)}));
    }
    choices.push_back(builder_.sequence({json_characters(builder_, complement(known)), rest}));
    if (!node.ends) choices.push_back(builder_.empty());
    builder_.define(node.rule, builder_.choice(std::move(choices)));
  }
  return quoted(builder_.call(nodes.front().rule));
}

}  // namespace sluice
