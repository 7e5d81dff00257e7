// What is asked (Request), what is computed in one go (Batch) and what comes back (Result).
// Plain structs: no methods that change state, nothing that cannot be sent over a wire except the
// caller's own sink and constraint.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/token_constraint.h"

namespace sluice {

using RequestId = uint64_t;

struct SamplingParams {
  float temperature = 1;         // 0: the largest logit, ties to the lower id
  int top_k = 0;                 // 0: all
  float top_p = 1;               // 1: off
  float min_p = 0;               // 0: off
  float typical_p = 1;           // 1: off
  float repetition_penalty = 1;  // divides (multiplies if negative) logits of tokens seen so far
  float presence_penalty = 0;    // subtracted once from logits of generated tokens
  float frequency_penalty = 0;   // subtracted per occurrence in the generated tokens
  std::vector<std::pair<Token, float>> logit_bias;  // added before everything else
  uint64_t seed = 0;        // the draw at a position depends on (seed, position) alone
  int n_top_logprobs = -1;  // -1: no log-probabilities; 0: the token's own; n: the n largest too

  bool needs_history() const {
    return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0;
  }
};

enum class FinishReason : uint8_t { kNone, kStop, kLength, kCancelled, kError, kAborted };

struct TokenScore {
  Token token = -1;
  float logprob = 0;
};

/// One step of an answer, given to the request's sink.
struct TokenEvent {
  RequestId request = 0;
  Token token = -1;   // -1: no token, only a finish or a score
  int position = 0;   // of `token` in the sequence
  float logprob = 0;  // natural log; only if asked for
  std::vector<TokenScore> top;
  bool drafted = false;  // came out of a verified guess
  FinishReason finish = FinishReason::kNone;
  std::string error;  // kError: what went wrong; kAborted: why the engine was closed
  /// When the prompt is done, if `score_from` asked: one per scored token.
  std::vector<float> prompt_logprobs;
  /// (rows, vocab) for consecutive prompt positions, the first of them `position`: in events of
  /// their own (token -1), in order, if `want_logits` was set.
  std::vector<float> logits;
  /// (rows, dim), likewise, if `want_hidden` was set.
  std::vector<float> hidden;
  int n_cached = 0;        // with the first event: prompt tokens taken from the prefix cache
  double admitted_us = 0;  // likewise when it left the queue, on the clock of Engine::step()
};

struct Request {
  std::vector<Token> prompt;  // not empty
  SamplingParams sampling;
  int max_tokens = 0;       // 0: only compute the prompt (scores, logits)
  int min_tokens = 0;       // end tokens are not sampled before
  bool ignore_end = false;  // end tokens are ordinary tokens
  std::vector<Token> end_tokens;
  int priority = 0;  // larger is sooner
  bool use_prefix_cache = true;
  bool speculate = true;     // may be helped by the drafter, if the engine has one
  int score_from = -1;       // >= 0: log-probabilities of prompt[i], i >= max(score_from, 1)
  bool want_logits = false;  // logits of every prompt position
  bool want_hidden = false;  // likewise the hidden states, after the final norm
  std::shared_ptr<TokenConstraint> constraint;
  /// Called once per event, in order, on the engine's thread. Returning false cancels.
  std::function<bool(const TokenEvent&)> sink;
};

// ---- What an executor computes ----

/// One position of one sequence.
struct BatchRow {
  Token token = 0;
  int32_t position = 0;
  int32_t sequence = 0;     // index into Batch::sequences
  int32_t state_save = -1;  // recurrent models: slot that receives the state after this row
  int32_t mask = -1;        // index into Batch::masks, for sampling from this row
  Token target = -1;        // >= 0: this token's log-probability at this row is wanted
  bool sample = false;      // a token is to be drawn from this row's logits
  bool logits = false;      // the logits themselves are wanted
  bool hidden = false;      // the hidden state is wanted; needs no head
  bool wanted() const { return sample || logits || target >= 0; }
};

/// The rows of one sequence stand together and in order of position.
struct BatchSequence {
  RequestId id = 0;
  int32_t first_row = 0, n_rows = 0;
  std::vector<int32_t> pages;  // page of positions [32 i, 32 i + 32), up to the last row's
  int32_t state_load = -1;     // slot with the state before the first row; -1: start from zero
  std::shared_ptr<const SamplingParams> sampling;
  /// Only if sampling->needs_history(): the tokens of the sequence up to and including this batch's
  /// rows; a row at position p sees the first p + 1.
  std::vector<Token> history;
  int32_t n_prompt = 0;  // how many of the history are the prompt
};

struct PageCopy {
  int32_t from = 0, to = 0;
};

struct Batch {
  uint64_t id = 0;
  std::vector<BatchRow> rows;
  std::vector<BatchSequence> sequences;
  std::vector<PageCopy> page_copies;         // done before the rows, in order
  std::vector<std::vector<uint32_t>> masks;  // bit t: token t may be sampled

  bool empty() const { return rows.empty(); }
};

struct RowResult {
  int32_t row = 0;
  Token token = -1;   // if the row asked for a sample
  float logprob = 0;  // of `token`, before temperature; if asked for
  std::vector<TokenScore> top;
  float target_logprob = 0;
  std::string error;  // not empty: nothing can be drawn here; fails this sequence only
};

/// Where the time of one batch went on one stage, microseconds.
struct StageTiming {
  double compute_us = 0;  // kernels
  double sync_us = 0;     // forking and joining threads
  double wire_us = 0;     // frames
  double idle_us = 0;     // waiting for a frame
  int32_t joins = 0;      // fork-join pairs
};

struct Result {
  uint64_t batch = 0;
  std::vector<RowResult> rows;  // one per wanted row, in row order
  std::vector<float> logits;    // (rows with `logits`, vocab), in row order
  std::vector<float> hidden;    // (rows with `hidden`, dim), in row order
  std::vector<StageTiming> stages;
  std::string error;  // not empty: the batch failed, `rows` is empty
};

}  // namespace sluice
