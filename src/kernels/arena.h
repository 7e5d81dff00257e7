// Scratch memory of one stage: bump allocation, released as a whole, kept between steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sluice {

/// Zero-filled, 64-byte aligned memory straight from the operating system; large blocks ask for
/// huge pages. Untouched pages take no memory.
class PageMemory {
 public:
  PageMemory() = default;
  explicit PageMemory(size_t bytes);  // throws kResource
  ~PageMemory();
  PageMemory(PageMemory&& other) noexcept { *this = std::move(other); }
  PageMemory& operator=(PageMemory&& other) noexcept;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

class Arena {
 public:
  /// 64-byte aligned, not initialised. Grows when a step needs more than any step before it.
  void* allocate(size_t bytes);
  template <typename T>
  T* array(int64_t n) {
    return static_cast<T*>(allocate(size_t(n) * sizeof(T)));
  }

  struct Mark {
    size_t slab, used;
  };
  Mark mark() const { return {slab_, used_}; }
  /// Frees all that was allocated since the mark.
  void release(Mark mark);

 private:
  std::vector<PageMemory> slabs_;
  size_t slab_ = 0, used_ = 0;
};

}  // namespace sluice
