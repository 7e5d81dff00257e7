// Cuts a template into tokens, with the white space rules of jinja2 (trim_blocks, lstrip_blocks).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::jinja {

enum class TokenKind {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind;
  std::string text;  // of a string: its value
  int line;
};

/// Throws Failure for what is no token, unclosed comments, strings and brackets. `line` is kept at
/// the line being read, for the message.
std::vector<Token> tokenize(std::string_view source, int& line);

}  // namespace sluice::jinja
