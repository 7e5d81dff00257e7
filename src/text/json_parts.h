// What JSON grammars are made of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "text/grammar.h"

namespace sluice {

/// Rules are made when they are first used, once per builder.
class JsonParts {
 public:
  explicit JsonParts(GrammarBuilder& builder) : builder_(builder) {}

  Expr space();      // at most one space, or a line break and up to 32 spaces
  Expr string();     // any
  Expr character();  // of a string, any
  Expr number();
  Expr integer();
  Expr value();   // any
  Expr object();  // any
  Expr array();   // any
  /// `body` between quotes.
  Expr quoted(Expr body);
  /// Any string but `names`, which are UTF-8.
  Expr string_except(const std::vector<std::string>& names);
  /// `name`: value
  Expr member(Expr name, Expr value);
  Expr comma();
  /// Between min and max (< 0: no limit) elements, separated.
  Expr list(Expr element, int min, int max);
  Expr braced(Expr body);
  Expr bracketed(Expr body);

 private:
  struct NameTree;
  Expr once(std::optional<RuleId>& rule, const char* name, Expr (JsonParts::*make)());
  Expr make_space();
  Expr make_string();
  Expr make_character();
  Expr make_number();
  Expr make_integer();
  Expr make_value();
  Expr make_object();
  Expr make_array();

  GrammarBuilder& builder_;
  std::optional<RuleId> space_, string_, character_, number_, integer_, value_, object_, array_;
};

}  // namespace sluice
