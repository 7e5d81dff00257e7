// Who asks for how many tokens, and when: the load that a simulation serves.
#pragma once

#include <cstdint>
#include <limits>
#include <queue>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"

namespace sluice {

/// A request that is made at `time_us`. The requests of a session are the turns of one
/// conversation: each prompt begins with the session's text so far.
struct Arrival {
  double time_us = 0;
  int prompt = 0, output = 0;  // tokens
  uint32_t session = 0;
  int turn = 0;
};

struct WorkloadOptions {
  int requests = 1000;                    // in all; the last sessions may end early
  double rate = 0;                        // sessions per second, Poisson; 0: `users` instead
  int users = 1;                          // each starts a session when the one before has ended
  double prompt = 512, output = 128;      // tokens of a turn, on average
  double spread = 0;                      // standard deviation of both over their averages
  int turns = 1;                          // requests per session
  double turn_prompt = 64, think_us = 0;  // new tokens and the pause before each further turn
  uint64_t seed = 1;

  /// Throws kInvalidInput naming what is out of range.
  void validate() const;
};

class Workload {
 public:
  explicit Workload(const WorkloadOptions& options);
  /// CSV with the columns arrival_s, prompt_tokens, output_tokens and perhaps session, named in the
  /// first line. `what` (a file name) starts every message. Throws kInvalidInput with the line.
  static Workload from_trace(std::string_view text, const std::string& what);

  /// Whether arrivals do not wait for answers.
  bool is_open() const { return options_.rate > 0 || !trace_.empty(); }
  /// When the next request arrives; infinity if none does before another is answered.
  double next_us() const;
  Arrival take();
  /// The request has been answered: the session goes on, or its user begins the next.
  void finished(const Arrival& arrival, double now_us);
  /// Requests that were not taken yet.
  int remaining() const;
  /// The longest that a session can become; an estimate if lengths are drawn.
  int64_t longest() const;

 private:
  struct Later {
    bool operator()(const Arrival& a, const Arrival& b) const {
      return a.time_us != b.time_us ? a.time_us > b.time_us : a.session > b.session;
    }
  };

  Workload() = default;
  void begin_session(double time_us);
  void plan_open();
  double uniform();  // (0, 1]
  int length(double mean);

  WorkloadOptions options_;
  std::mt19937_64 random_;
  std::priority_queue<Arrival, std::vector<Arrival>, Later> pending_;
  std::vector<Arrival> trace_;
  size_t next_row_ = 0;
  uint32_t next_session_ = 0;
  int n_planned_ = 0, n_taken_ = 0;
  double open_us_ = 0;
};

/// Token `position` of the text of a session, in [0, vocab). The first `n_shared` are the same in
/// all sessions.
inline Token synthetic_token(uint32_t session, int position, int n_shared, int vocab) {
  const uint64_t key = position < n_shared ? 0 : uint64_t(session) + 1;
  uint64_t x = (key << 32 | uint32_t(position)) * 0x9e3779b97f4a7c15;
  x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9;
  return Token((x ^ x >> 32) % uint64_t(vocab));
}

}  // namespace sluice
