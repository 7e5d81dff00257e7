// The stage's half of the cache: the memory of one block's pages and state slots. Which page or
// slot means what is the scheduler's business.
#pragma once

#include "cache/cache_spec.h"
#include "kernels/arena.h"
#include "kernels/pass.h"

namespace sluice {

class CacheStorage {
 public:
  CacheStorage() = default;
  /// `f16`: keys and values in 16 bits; recurrent states are always f32. Throws kResource.
  CacheStorage(const CacheSpec& spec, const CachePools& pools, bool f16);

  KvView kv() const;
  StateView state() const;
  /// Copies what the block keeps in page `from` to page `to`.
  void copy_page(int from, int to);
  /// Bytes reserved; pages that were never written take no memory.
  size_t bytes() const { return memory_.bytes(); }

 private:
  CacheSpec spec_;
  bool f16_ = false;
  size_t k_page_bytes_ = 0, v_page_bytes_ = 0;
  size_t v_offset_ = 0;
  PageMemory memory_;
};

/// Bytes per position (paged kinds) that the block allocates.
size_t cache_bytes_per_token(const CacheSpec& spec, bool f16);

}  // namespace sluice
