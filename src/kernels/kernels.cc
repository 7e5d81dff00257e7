#include "kernels/kernels.h"

#include <cstdlib>
#include <string>

#include "base/error.h"

namespace sluice {

namespace scalar {
extern const KernelTable kTable;
}
#if defined(__x86_64__)
namespace avx2 {
extern const KernelTable kTable;
}
namespace avx512 {
extern const KernelTable kTable;
}
#endif

const std::vector<const KernelTable*>& supported_kernels() {
  static const std::vector<const KernelTable*> tables = [] {
    std::vector<const KernelTable*> found;
#if defined(__x86_64__)
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          __builtin_cpu_supports("f16c");
    if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vnni")) {
      found.push_back(&avx512::kTable);
    }
    if (has_avx2) found.push_back(&avx2::kTable);
#endif
    found.push_back(&scalar::kTable);
    return found;
  }();
  return tables;
}

const KernelTable& kernels() {
  static const KernelTable& chosen = []() -> const KernelTable& {
    const char* wanted = std::getenv("SLUICE_ISA");
    if (!wanted || !*wanted) return *supported_kernels().front();
    std::string names;
    for (const KernelTable* table : supported_kernels()) {
      if (std::string_view(wanted) == table->isa) return *table;
      names += names.empty() ? table->isa : std::string(", ") + table->isa;
    }
    throw Error(ErrorCode::kUnsupported, "SLUICE_ISA: expected one of {}, got {}", names, wanted);
  }();
  return chosen;
}

}  // namespace sluice
