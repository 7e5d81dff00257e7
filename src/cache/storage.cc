#include "cache/storage.h"

#include <cstring>

namespace sluice {
namespace {

size_t k_row_bytes(const CacheSpec& spec, bool f16) {
  return size_t(spec.n_kv_heads) * size_t(spec.head_dim) * (f16 ? 2 : 4);
}

size_t v_row_bytes(const CacheSpec& spec, bool f16) {
  return size_t(spec.n_kv_heads) * size_t((spec.v_head_dim + 15) / 16 * 16) * (f16 ? 2 : 4);
}

}  // namespace

size_t cache_bytes_per_token(const CacheSpec& spec, bool f16) {
  if (spec.kind != CacheKind::kPagedKv) return 0;
  return k_row_bytes(spec, f16) + v_row_bytes(spec, f16);
}

CacheStorage::CacheStorage(const CacheSpec& spec, const CachePools& pools, bool f16)
    : spec_(spec), f16_(f16) {
  if (spec.kind == CacheKind::kPagedKv) {
    k_page_bytes_ = kPageTokens * k_row_bytes(spec, f16);
    v_page_bytes_ = kPageTokens * v_row_bytes(spec, f16);
    v_offset_ = (size_t(pools.n_pages) * k_page_bytes_ + 63) & ~size_t{63};
    memory_ = PageMemory(v_offset_ + size_t(pools.n_pages) * v_page_bytes_);
  } else if (spec.kind == CacheKind::kRecurrent) {
    memory_ = PageMemory(size_t(pools.n_state_slots) * size_t(spec.state_floats) * sizeof(float));
  }
}

KvView CacheStorage::kv() const {
  if (spec_.kind != CacheKind::kPagedKv) return {};
  return {.k = memory_.data(),
          .v = memory_.data() + v_offset_,
          .k_page_bytes = int64_t(k_page_bytes_),
          .v_page_bytes = int64_t(v_page_bytes_),
          .f16 = f16_};
}

StateView CacheStorage::state() const {
  if (spec_.kind != CacheKind::kRecurrent) return {};
  return {.data = reinterpret_cast<float*>(memory_.data()), .slot_floats = spec_.state_floats};
}

void CacheStorage::copy_page(int from, int to) {
  if (spec_.kind != CacheKind::kPagedKv) return;
  std::byte* k = memory_.data();
  std::byte* v = memory_.data() + v_offset_;
  std::memcpy(k + size_t(to) * k_page_bytes_, k + size_t(from) * k_page_bytes_, k_page_bytes_);
  std::memcpy(v + size_t(to) * v_page_bytes_, v + size_t(from) * v_page_bytes_, v_page_bytes_);
}

}  // namespace sluice
