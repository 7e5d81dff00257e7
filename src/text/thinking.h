// Thinking before a constrained answer, and a limit to it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/token_constraint.h"
#include "text/vocabulary_trie.h"

namespace sluice {

class Tokenizer;
struct ChatFormat;

struct ThinkingRules {
  std::vector<Token> open, close;  // the markers as tokens
  std::string close_text;
  bool begun = false;   // the prompt has opened the thinking
  int64_t budget = -1;  // most tokens of it; -1: no limit; 0: none
  size_t n_words = 0;   // of a mask
  std::vector<Token> end_tokens;
  std::vector<Token> gaps;  // white space that may follow the thinking
  std::shared_ptr<const VocabularyTrie> vocabulary;
};

/// Of a format that marks its thinking.
ThinkingRules thinking_rules(const ChatFormat& format, const Tokenizer& tokenizer,
                             std::shared_ptr<const VocabularyTrie> vocabulary);

/// `answer` holds for what follows the thinking, or at once if the model does not think; nullptr:
/// everything may follow. Once the budget is spent nothing but the closing marker is allowed.
std::unique_ptr<TokenConstraint> constrain_after_thinking(
    std::shared_ptr<const ThinkingRules> rules, std::unique_ptr<TokenConstraint> answer);

}  // namespace sluice
