// What an engine counted since it was made.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/request.h"

namespace sluice {

struct EngineStats {
  uint64_t batches = 0, rows = 0;
  uint64_t prompt_tokens = 0;  // computed as rows, also those computed again after a preemption
  uint64_t cached_tokens = 0;  // taken from the prefix cache instead
  uint64_t generated_tokens = 0;
  uint64_t finished = 0, cancelled = 0, failed = 0;
  uint64_t preemptions = 0;
  std::vector<uint64_t> drafted, accepted;  // by place in the guess: [0] is the first guessed token
  std::vector<StageTiming> stages;          // summed over batches

  // Now:
  int n_running = 0, n_waiting = 0;
  int n_pages = 0, n_free_pages = 0, n_cached_pages = 0;
  int n_slots = 0, n_free_slots = 0, n_cached_slots = 0;
};

}  // namespace sluice
