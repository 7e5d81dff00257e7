#include "cache/ref_pool.h"

#include "base/error.h"

namespace sluice {

RefPool::RefPool(int n) {
  CHECK(n >= 0);
  refs_.resize(static_cast<size_t>(n), 0);
  for (int id = n - 1; id >= 0; --id) free_.push_back(id);
}

int32_t RefPool::take() {
  if (free_.empty()) return -1;
  const int32_t id = free_.back();
  free_.pop_back();
  refs_[static_cast<size_t>(id)] = 1;
  return id;
}

void RefPool::add_ref(int32_t id) {
  CHECK(id >= 0 && id < size() && refs(id) > 0);
  ++refs_[static_cast<size_t>(id)];
}

void RefPool::release(int32_t id) {
  CHECK(id >= 0 && id < size() && refs(id) > 0);
  if (--refs_[static_cast<size_t>(id)] == 0) free_.push_back(id);
}

}  // namespace sluice
