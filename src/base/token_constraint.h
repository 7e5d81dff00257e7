// What restricts the next token, seen by the engine (which asks) and by text (which knows
// grammars).
#pragma once

#include <cstdint>
#include <vector>

namespace sluice {

using Token = int32_t;

/// Restricts the next token, e.g. to a grammar. Called on the engine's thread only.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  /// Sets bit t of `bits` (32 per word, vocab rounded up) iff token t may come next.
  virtual void allowed(std::vector<uint32_t>& bits) = 0;
  /// Appends a token; false if it was not allowed (the state is then unchanged).
  virtual bool accept(Token token) = 0;
  /// Takes back the last n accepted tokens.
  virtual void rollback(int n) = 0;
};

}  // namespace sluice
