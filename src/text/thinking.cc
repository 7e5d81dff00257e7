#include "text/thinking.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace sluice {
namespace {

class AfterThinking : public TokenConstraint {
 public:
  AfterThinking(std::shared_ptr<const ThinkingRules> rules, std::unique_ptr<TokenConstraint> answer)
      : rules_(std::move(rules)), answer_(std::move(answer)) {
    Step first;
    first.phase = rules_->begun ? Phase::kThinking : Phase::kOpening;
    steps_.push_back(first);
  }

  void allowed(std::vector<uint32_t>& bits) override;
  bool accept(Token token) override;
  void rollback(int n) override;

 private:
  enum class Phase : uint8_t { kOpening, kThinking, kGap, kAnswer };
  /// The state after a token.
  struct Step {
    Phase phase = Phase::kOpening;
    bool in_answer = false;  // the token went to answer_
    int64_t n_thought = 0;
    uint32_t n_opened = 0, n_closed = 0;  // tokens of the markers, one after the other
  };

  bool spent(const Step& at) const { return rules_->budget >= 0 && at.n_thought >= rules_->budget; }
  bool closes(Token token) const;
  void think(Step& next, Token token) const;

  std::shared_ptr<const ThinkingRules> rules_;
  std::unique_ptr<TokenConstraint> answer_;
  std::vector<Step> steps_;
  std::vector<Token> tokens_;
};

void set(std::vector<uint32_t>& bits, Token token, bool value) {
  const auto word = static_cast<size_t>(token) / 32;
  if (word >= bits.size()) return;
  const uint32_t bit = 1u << (token % 32);
  bits[word] = value ? bits[word] | bit : bits[word] & ~bit;
}

void AfterThinking::allowed(std::vector<uint32_t>& bits) {
  const Step& at = steps_.back();
  if (at.phase == Phase::kThinking) {
    const bool closing = spent(at) || at.n_closed > 0;
    bits.assign(rules_->n_words, closing ? 0 : ~0u);
    if (closing) return set(bits, rules_->close[at.n_closed], true);
    for (const Token end : rules_->end_tokens) set(bits, end, false);
    return;
  }
  if (at.phase == Phase::kOpening && at.n_opened > 0) {
    bits.assign(rules_->n_words, 0);
    return set(bits, rules_->open[at.n_opened], true);
  }
  if (answer_) {
    answer_->allowed(bits);
  } else {
    bits.assign(rules_->n_words, ~0u);
  }
  if (at.phase == Phase::kOpening) set(bits, rules_->open[0], rules_->budget != 0);
  if (at.phase == Phase::kGap) {
    for (const Token gap : rules_->gaps) set(bits, gap, true);
  }
}

/// Whether the thinking's text ends with the marker after `token`.
bool AfterThinking::closes(Token token) const {
  const std::string& marker = rules_->close_text;
  std::string tail(rules_->vocabulary->token_text(token));
  for (auto it = tokens_.rbegin(); it != tokens_.rend() && tail.size() < 2 * marker.size(); ++it) {
    tail.insert(0, rules_->vocabulary->token_text(*it));
  }
  return tail.find(marker) != tail.npos;
}

void AfterThinking::think(Step& next, Token token) const {
  const bool forced = spent(next) || next.n_closed > 0;
  ++next.n_thought;
  const bool is_marker = token == rules_->close[next.n_closed];
  next.n_closed = is_marker && (forced || rules_->close.size() == 1) ? next.n_closed + 1 : 0;
  if (next.n_closed == rules_->close.size() || (!is_marker && closes(token))) {
    next.phase = Phase::kGap;
  }
}

bool AfterThinking::accept(Token token) {
  Step next = steps_.back();
  next.in_answer = false;
  const bool opening = next.phase == Phase::kOpening;
  if (next.phase == Phase::kThinking) {
    const bool forced = spent(next) || next.n_closed > 0;
    if (forced && token != rules_->close[next.n_closed]) return false;
    think(next, token);
  } else if (opening && token == rules_->open[next.n_opened] && rules_->budget != 0) {
    if (++next.n_opened == rules_->open.size()) next.phase = Phase::kThinking;
  } else if (opening && next.n_opened > 0) {
    return false;
  } else if (next.phase == Phase::kGap && std::ranges::count(rules_->gaps, token) > 0) {
    next.phase = Phase::kAnswer;
  } else {
    if (answer_ && !answer_->accept(token)) return false;
    next.in_answer = true;
    next.phase = Phase::kAnswer;
  }
  steps_.push_back(next);
  tokens_.push_back(token);
  return true;
}

void AfterThinking::rollback(int n) {
  CHECK(n >= 0 && static_cast<size_t>(n) < steps_.size());
  int n_answer = 0;
  for (int i = 0; i < n; ++i) {
    n_answer += steps_.back().in_answer;
    steps_.pop_back();
    tokens_.pop_back();
  }
  if (answer_) answer_->rollback(n_answer);
}

}  // namespace

ThinkingRules thinking_rules(const ChatFormat& format, const Tokenizer& tokenizer,
                             std::shared_ptr<const VocabularyTrie> vocabulary) {
  ThinkingRules rules;
  rules.open = tokenizer.encode(format.think_open, /*add_special=*/false);
  rules.close = tokenizer.encode(format.think_close, /*add_special=*/false);
  rules.close_text = format.think_close;
  rules.n_words = vocabulary->n_words();
  rules.end_tokens.assign(vocabulary->end_tokens().begin(), vocabulary->end_tokens().end());
  for (const char* gap : {"\n", "\n\n"}) {
    const auto tokens = tokenizer.encode(gap, /*add_special=*/false);
    if (tokens.size() == 1) rules.gaps.push_back(tokens[0]);
  }
  rules.vocabulary = std::move(vocabulary);
  return rules;
}

std::unique_ptr<TokenConstraint> constrain_after_thinking(
    std::shared_ptr<const ThinkingRules> rules, std::unique_ptr<TokenConstraint> answer) {
  CHECK(!rules->open.empty() && !rules->close.empty());
  return std::make_unique<AfterThinking>(std::move(rules), std::move(answer));
}

}  // namespace sluice
