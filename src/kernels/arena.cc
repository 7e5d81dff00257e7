#include "kernels/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kSlabBytes = size_t{4} << 20;

}  // namespace

PageMemory::PageMemory(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    throw Error(ErrorCode::kResource, "memory: cannot reserve {} bytes", bytes);
  }
  data_ = static_cast<std::byte*>(p);
  if (bytes >= 4 * kHugePage) madvise(p, bytes, MADV_HUGEPAGE);
}

PageMemory::~PageMemory() {
  if (data_) munmap(data_, bytes_);
}

PageMemory& PageMemory::operator=(PageMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void* Arena::allocate(size_t bytes) {
  bytes = (bytes + 63) & ~size_t{63};
  while (slab_ < slabs_.size() && used_ + bytes > slabs_[slab_].bytes()) {
    ++slab_;
    used_ = 0;
  }
  if (slab_ == slabs_.size()) slabs_.emplace_back(std::max(bytes, kSlabBytes));
  void* p = slabs_[slab_].data() + used_;
  used_ += bytes;
  return p;
}

void Arena::release(Mark mark) {
  slab_ = mark.slab;
  used_ = mark.used;
}

}  // namespace sluice
