// When a thread had better give its CPU away of its own accord: with another process on the same
// CPU the kernel takes it at the end of a time slice, in the middle of whatever the thread does.
#pragma once

#include <cstdint>

namespace sluice {

/// Times are of any clock that never goes back.
class CpuTurns {
 public:
  /// Not running for `gap` means that somebody else ran, who is taken to be there for another
  /// `memory`; while somebody is there, a turn should end after `length`.
  CpuTurns(int64_t gap, int64_t memory, int64_t length, int64_t now)
      : gap_(gap), memory_(memory), length_(length), seen_(now), begin_(now), shared_until_(now) {}

  /// To be asked often while the thread runs: is it time to give the CPU away?
  bool over(int64_t now) {
    if (now - seen_ > gap_) begin(now);
    seen_ = now;
    return now < shared_until_ && now - begin_ > length_;
  }

  /// The thread runs again after it gave the CPU away.
  void begin(int64_t now) {
    if (now - seen_ > gap_) shared_until_ = now + memory_;
    seen_ = begin_ = now;
  }

  /// The thread runs again after a sleep, which says nothing about others.
  void wake(int64_t now) { seen_ = begin_ = now; }

 private:
  int64_t gap_, memory_, length_;
  int64_t seen_, begin_, shared_until_;
};

}  // namespace sluice
