// What an engine is told once.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/request.h"

namespace sluice {

enum class Speculation : uint8_t {
  kOff,
  kNgram,  // guesses from the sequence's own text (drafter.h)
};

struct EngineOptions {
  int chunk = 512;  // most rows per batch; decode never waits longer than for one such batch
  /// Prompt rows beside decoding sequences, at least: few where a row takes long, as on a CPU, so
  /// that an arrival makes the others' steps a few times as long, not as long as its prompt takes.
  int mixed_rows = 16;
  int max_sequences = 64;  // served at the same time; the rest wait
  int max_context = 0;  // most tokens of a sequence, prompt included; 0: as many as the pages hold
  int vocab_size = 0;   // tokens at or above are refused; 0: not checked
  Speculation speculation = Speculation::kNgram;
  int max_draft = 15;  // most guesses per step
  /// Guesses in place of the text's own: appends at most `most` tokens that may follow the first
  /// `n_tokens` of a request's text. Unlike those they are always verified, whatever rows cost.
  std::function<void(RequestId, int n_tokens, int most, std::vector<Token>& guesses)> guesser{};
  bool prefix_cache = true;
  double ageing_us = 1e6;  // one level of priority is worth this much waiting

  /// Throws kInvalidInput if a number is out of range.
  void validate() const;
};

}  // namespace sluice
