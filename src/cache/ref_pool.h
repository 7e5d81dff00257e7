// Numbers 0..n-1 with reference counts: cache pages and recurrent state slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

class RefPool {
 public:
  explicit RefPool(int n);

  /// A free number, now with one reference; -1 if all are taken.
  int32_t take();
  void add_ref(int32_t id);
  /// Drops one reference; after the last one the number is free.
  void release(int32_t id);

  int refs(int32_t id) const { return refs_[static_cast<size_t>(id)]; }
  int n_free() const { return static_cast<int>(free_.size()); }
  int size() const { return static_cast<int>(refs_.size()); }

 private:
  std::vector<int32_t> refs_;
  std::vector<int32_t> free_;  // the next to be taken is last
};

}  // namespace sluice
