// Weight matrices in kernel layout: panels of 16 rows, interleaved so that one vector lane is one
// output row and no horizontal sum is ever needed. One layout serves every ISA.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/args.h"
#include "kernels/table.h"
#include "weights/checkpoint.h"
#include "weights/tensor.h"

namespace sluice {

/// A view of a packed (rows, cols) matrix; the memory belongs to whoever packed it.
struct PackedMatrix {
  DType dtype = DType::kF32;  // one for which has_packed_kernel(dtype)
  int64_t rows = 0, cols = 0;
  const std::byte* data = nullptr;  // 64-byte aligned, n_panels() * panel_bytes
  size_t panel_bytes = 0;

  int64_t n_panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
  size_t bytes() const { return size_t(n_panels()) * panel_bytes; }
};

/// F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL IQ4_XS MXFP4.
bool has_packed_kernel(DType dtype);
/// The type in which a matrix of `dtype` is kept: itself, or F32 for types without a kernel.
DType packed_dtype(DType dtype);
/// Whether the type's matrices can be multiplied with 8-bit activations (the quantised types).
bool has_i8_kernel(DType packed);

/// Bytes of one panel of a matrix with `cols` columns, a multiple of 64.
size_t packed_panel_bytes(DType packed, int64_t cols);

/// Packs panels [first, last) of `source` (its rows un-permuted, see
/// MatrixSource::interleaved_heads) to `out`, which receives (last - first) * panel_bytes. Missing
/// rows of the last panel are zero.
void pack_panels(const MatrixSource& source, DType packed, int64_t first, int64_t last,
                 std::byte* out);

/// Row `row` of the matrix as f32, e.g. for embeddings.
void unpack_row(const PackedMatrix& matrix, int64_t row, float* out);

/// The kernels for a packed type; the i8 one is nullptr without has_i8_kernel().
void (*matmul_f32_kernel(const KernelTable& table, DType packed))(const MatmulF32Args&);
void (*matmul_i8_kernel(const KernelTable& table, DType packed))(const MatmulI8Args&);

}  // namespace sluice
