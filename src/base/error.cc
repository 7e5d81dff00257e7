#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace sluice {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace sluice
