#include "weights/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace sluice {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* action) {
  const ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
  throw Error(code, "{}: cannot {}: {}", path.string(), action, std::strerror(errno));
}

struct Descriptor {
  int fd;
  ~Descriptor() { ::close(fd); }
};

uintptr_t page_bytes() {
  static const uintptr_t bytes = uintptr_t(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not block
  if (fd < 0) fail(path, "open");
  const Descriptor descriptor{fd};
  struct stat status;
  if (::fstat(fd, &status) != 0) fail(path, "read the size");
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::kIo, "{}: expected a regular file", path.string());
  }
  if (status.st_size == 0) return;
  const size_t size = size_t(status.st_size);
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) fail(path, "map");
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void prefetch(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const uintptr_t begin = uintptr_t(bytes.data()) & ~(page_bytes() - 1);
  const uintptr_t end = uintptr_t(bytes.data() + bytes.size());
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_WILLNEED);
}

void release(std::span<const std::byte> bytes) {
  const uintptr_t mask = page_bytes() - 1;
  const uintptr_t begin = (uintptr_t(bytes.data()) + mask) & ~mask;
  const uintptr_t end = uintptr_t(bytes.data() + bytes.size()) & ~mask;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace sluice
