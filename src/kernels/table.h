// The kernels of one instruction set as a struct of function pointers.
#pragma once

#include "kernels/args.h"

namespace sluice {

struct KernelTable {
  const char* isa;
#define KERNEL(name, Args, tolerance) void (*name)(const Args&);
#include "kernels/kernels.inc"
#undef KERNEL
};

}  // namespace sluice
