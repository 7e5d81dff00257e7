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
  /// The answer is what follows the format's `open`; only strict and custom tools' arguments are
  /// more than any object.
  bool behind_open = false;
  std::function<Expr(GrammarBuilder&)> text;  // of an answer that is no call
};

/// The answer behind the prompt, or behind the thinking if the family marks it. Throws as
/// json_schema_grammar() does; errors name the tool.
Expr answer_grammar(GrammarBuilder& builder, const ChatFormat& format, const AnswerGrammar& answer,
                    const Tokenizer& tokenizer);

/// A marker as the vocabulary writes it: a special token, or text.
std::string marker_text(const std::string& marker, const Tokenizer& tokenizer);

}  // namespace sluice
