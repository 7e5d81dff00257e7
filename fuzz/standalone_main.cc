// Runs a fuzz target without libFuzzer: every seed as it is, then a fixed number of deterministic
// mutations of it. Stops the program on an allocation that no input of this size justifies and on
// an input that takes longer than ten seconds.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr int kMutationsPerSeed = 1000;
constexpr size_t kLargestAllocation = size_t(64) << 20;
constexpr unsigned kSeconds = 10;

void* allocate(size_t bytes) {
  if (bytes > kLargestAllocation) {
    std::fprintf(stderr, "allocation of %zu bytes\n", bytes);
    std::abort();
  }
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}

/// Not inlined, or the compiler warns of memory from `new` that is freed.
[[gnu::noinline]] void give_back(void* p) noexcept { std::free(p); }

/// splitmix64
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }
  size_t below(size_t n) { return n == 0 ? 0 : size_t(next() % n); }

 private:
  uint64_t state_;
};

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kInteresting[] = {0,          1,          2,          0x7F,       0x80,
                                     0xFF,       0x7FFF,     0xFFFF,     0x7FFFFFFF, 0xFFFFFFFF,
                                     1ull << 32, 1ull << 60, 1ull << 62, 1ull << 63, ~0ull};

/// Most positions lie near the beginning, where formats keep their headers.
size_t position(const Bytes& bytes, Random& random) {
  const size_t head = std::min<size_t>(bytes.size(), size_t(64) << random.below(12));
  return random.below(random.below(8) == 0 ? bytes.size() : head);
}

void mutate_once(Bytes& bytes, Random& random) {
  const size_t at = position(bytes, random);
  const size_t span = std::min(random.below(64) + 1, bytes.size() - at);
  const auto begin = bytes.begin() + std::ptrdiff_t(at);
  switch (random.below(6)) {
    case 0:
      if (span > 0) bytes[at] ^= uint8_t(1u << random.below(8));
      break;
    case 1:
      if (span > 0) bytes[at] = uint8_t(random.next());
      break;
    case 2: {
      const uint64_t value = kInteresting[random.below(std::size(kInteresting))];
      std::memcpy(bytes.data() + at, &value, std::min<size_t>(span, size_t(1) << random.below(4)));
      break;
    }
    case 3:
      bytes.erase(begin, begin + std::ptrdiff_t(span));
      break;
    case 4: {
      const Bytes copy(begin, begin + std::ptrdiff_t(span));
      bytes.insert(bytes.begin() + std::ptrdiff_t(position(bytes, random)), copy.begin(),
                   copy.end());
      break;
    }
    case 5:
      if (random.below(8) == 0) bytes.resize(at);
      break;
  }
}

void run(const Bytes& bytes) {
  // A copy of the exact size, so that a sanitizer sees a read behind its end.
  const Bytes exact(bytes.begin(), bytes.end());
  alarm(kSeconds);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  alarm(0);
}

}  // namespace

void* operator new(size_t bytes) { return allocate(bytes); }
void* operator new[](size_t bytes) { return allocate(bytes); }
// Or a sanitizer's own would meet the deletes below.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return std::malloc(bytes); }
void operator delete(void* p) noexcept { give_back(p); }
void operator delete[](void* p) noexcept { give_back(p); }
void operator delete(void* p, size_t) noexcept { give_back(p); }
void operator delete[](void* p, size_t) noexcept { give_back(p); }

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "cannot open %s\n", argv[i]);
      return 1;
    }
    const Bytes seed{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    run(seed);
    for (uint64_t n = 0; n < kMutationsPerSeed; ++n) {
      Random random(uint64_t(i) << 32 | n);
      Bytes bytes = seed;
      for (size_t k = random.below(4) + 1; k > 0; --k) mutate_once(bytes, random);
      run(bytes);
    }
  }
  run({});
  std::printf("%d seeds, %d mutations of each\n", argc - 1, kMutationsPerSeed);
}
