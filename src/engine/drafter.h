// Guesses the next tokens of a sequence by looking up its last few tokens earlier in its own text,
// and decides how many guesses are worth computing. Guesses never change an answer: each is
// verified against the token the model draws.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/request.h"

namespace sluice {

/// What one more row costs: a line fitted to the times of recent decode batches.
class RowCost {
 public:
  void observe(int n_rows, double us);
  /// The time of one more row in a batch of `n_rows`, in shares of the time per row and token that
  /// such a batch takes now: 0 free, 1 as much as a row of its own batch.
  double relative(int n_rows) const;

 private:
  double weight_ = 0, rows_ = 0, time_ = 0, rows2_ = 0, rows_time_ = 0;  // decaying sums
};

/// The lookup of one sequence. It follows the earlier occurrence of the current text token by
/// token, so how often it is right is known without computing any guess.
class PromptLookup {
 public:
  static constexpr int kGram = 3;  // tokens that must match before anything is guessed

  /// Takes over the tokens of the prompt; sets memory aside for `n_expected` tokens in all.
  void start(std::span<const Token> prompt, size_t n_expected = 0);
  /// The model drew `token`.
  void append(Token token);
  /// Up to `max_draft` guesses that are expected to save more than they cost; `row_cost` as from
  /// RowCost. Often none.
  void propose(int max_draft, double row_cost, std::vector<Token>& drafts) const;
  /// Books what a proposal cost and saved, so that guessing in vain takes at most about 1 % of the
  /// time of a long answer.
  void settle(int n_drafted, int n_accepted, double row_cost);

 private:
  static constexpr int kBuckets = 4;
  struct Rate {
    double hits, tries;
  };

  static int bucket(int match_length);
  Token token_at(int64_t index) const { return tokens_[static_cast<size_t>(index)]; }
  size_t slot(int64_t end) const;
  void index_last();
  void rehash();
  void look_up();

  std::vector<Token> tokens_;
  // heads_[hash of the kGram tokens before i] is the latest such i, previous_[i] the one before.
  std::vector<int32_t> heads_, previous_;
  int32_t follow_ = -1;   // the index of the token that is expected next; -1: nothing matches
  int match_length_ = 0;  // how many tokens before it equal the last ones
  std::array<Rate, kBuckets> rates_{{{1, 2}, {2, 3}, {3, 4}, {4, 5}}};
  double funds_ = 1;  // plain decode steps that may be lost on guesses
};

}  // namespace sluice
