// Run-time choice of the instruction set.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/table.h"

namespace sluice {

/// The tables this machine can run, best first; the last is always "scalar".
const std::vector<const KernelTable*>& supported_kernels();

/// The best table, or the one that the environment variable SLUICE_ISA names (avx512, avx2,
/// scalar). Throws kUnsupported for a name this machine cannot run.
const KernelTable& kernels();

}  // namespace sluice
