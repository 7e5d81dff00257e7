// Calls of tools as a grammar, for answers that must be calls.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "text/chat_format.h"
#include "text/grammar.h"

namespace sluice {

class Tokenizer;

/// What an answer may be: calls, a text, or either.
struct AnswerGrammar {
  std::vector<ChatTool> tools;  // that may be called; empty: no calls
  bool parallel = true;         // more than one call
  /// Calls are what follows the format's first `open`, before which anything may be said; only
  /// strict and custom tools' arguments, and those of the plain form, are more than any object.
  bool behind_open = false;
  std::function<Expr(GrammarBuilder&)> text;  // of an answer that is no call
};

/// The answer behind the prompt, or behind the thinking if the family marks it. Throws as
/// json_schema_grammar() does; `what` or the tool's name starts every message.
Grammar answer_grammar(const std::string& what, const ChatFormat& format,
                       const AnswerGrammar& answer, const Tokenizer& tokenizer);

}  // namespace sluice
