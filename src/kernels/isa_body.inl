// Every algorithm, and the table of them, for the ISA whose vector names are in scope. Included
// inside the ISA's namespace; the unnamed namespace keeps all symbols local to the object file.
namespace {
#include "kernels/math.inl"
//
#include "kernels/attention.inl"
#include "kernels/elementwise.inl"
#include "kernels/norm.inl"
#include "kernels/ssm.inl"
}  // namespace

// Compiled on their own, in isa_*_matmul.cc.
#define KERNEL(name, Args, tolerance) void name(const Args&);
#include "kernels/matmul.inc"
#undef KERNEL

extern const KernelTable kTable;
const KernelTable kTable = {
    SLUICE_ISA_NAME,
#define KERNEL(name, Args, tolerance) name,
#include "kernels/kernels.inc"
#undef KERNEL
};
