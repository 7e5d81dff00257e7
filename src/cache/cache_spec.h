// What one block keeps per sequence, and the shape of the pools that hold it. Plain data, seen by
// the scheduler (which hands out page and slot numbers), the stages (which own the memory) and the
// planner (which counts it).
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

/// Positions per page, for every paged kind. A page number means the same positions in every block.
inline constexpr int kPageTokens = 32;

enum class CacheKind : uint8_t {
  kNone,
  kPagedKv,    // keys and values per position
  kRecurrent,  // convolution tail and state, a fixed size per sequence
};

struct CacheSpec {
  CacheKind kind = CacheKind::kNone;
  int n_kv_heads = 0, head_dim = 0, v_head_dim = 0;  // kPagedKv
  int window = 0;            // kPagedKv: positions visible to a query, itself included; 0: all
  int64_t state_floats = 0;  // kRecurrent: f32 values per state slot
};

/// The pools of a running model, the same numbers on every stage.
struct CachePools {
  int n_pages = 0;        // pages of kPageTokens positions
  int n_state_slots = 0;  // 0: the model has no recurrent block
};

}  // namespace sluice
