// Speculation as planner and simulator see it: who guesses, how many tokens at a time, and how many
// of them are kept.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

/// `length` guesses are verified at a time, `accepted` tokens come of a verification on average.
struct Draft {
  std::string method = "none";
  int length = 0;
  double accepted = 1;
  /// The shares of verifications that keep the first guess, the first two, ...; their sum and 1 are
  /// `accepted`.
  std::vector<double> reached{};
  /// Each guess is a batch of its own behind the one before, so that one user fills the stages.
  bool fills_pipe = false;
  std::string source{};
};

/// Published accepted lengths, on code. Throws kInvalidInput naming those that there are.
Draft draft_named(const std::string& method);
std::vector<std::string> draft_names();

/// How many guesses a verification keeps: decided by the arguments alone.
int accepted_guesses(const Draft& draft, uint64_t seed, uint64_t request, int position);

/// Of a draft that fills the pipe: tokens per pass through all stages with `n` batches under way,
/// by the wall clock. 1 for one.
double pipe_gain(int n);
/// No more batches than this were ever measured.
constexpr int kMostInPipe = 16;

}  // namespace sluice
