#include "kernels/packed.h"

#include "base/error.h"
#include "kernels/packed_layout.h"

namespace sluice {
namespace {

using MatmulF32 = void (*)(const MatmulF32Args&);
using MatmulI8 = void (*)(const MatmulI8Args&);

/// What a packed type consists of.
struct PackedType {
  DType dtype;
  size_t (*panel_bytes)(int64_t cols);
  void (*unpack_row)(const uint8_t* panel, int64_t cols, int lane, float* out);
  MatmulF32 KernelTable::*f32;
  MatmulI8 KernelTable::*i8;  // nullptr for plain types
};

template <class Values>
size_t plain_bytes(int64_t cols) {
  return size_t(cols) * Values::kBytes;
}

template <class Type>
size_t quant_bytes(int64_t cols) {
  CHECK(cols % Type::kUnit == 0);
  return size_t(cols / kQuantBlock) * Type::kCodeBytes +
         size_t(cols / Type::kUnit) * Type::kScaleBytes;
}

template <class Values>
void unpack_plain(const uint8_t* panel, int64_t cols, int lane, float* out) {
  for (int64_t c = 0; c < cols; ++c) out[c] = Values::get(panel + c * Values::kBytes, lane);
}

template <class Type>
void unpack_quant(const uint8_t* panel, int64_t cols, int lane, float* out) {
  for (int64_t first = 0; first < cols; first += Type::kBlock) {
    const layout::Scale s = Type::scale(panel, cols, first, lane);
    for (int64_t c = first; c < first + Type::kBlock; ++c) {
      out[c] = s.scale * float(Type::code(panel, c, lane)) + s.min;
    }
  }
}

constexpr PackedType kTypes[] = {
#define PACKED_PLAIN(name, dtype, Values)                                   \
  {DType::dtype, plain_bytes<layout::Values>, unpack_plain<layout::Values>, \
   &KernelTable::matmul_f32_##name, nullptr},
#define PACKED_QUANT(name, dtype, Codes, zero, Scales)                            \
  {DType::dtype, quant_bytes<layout::Quant<layout::Codes, zero, layout::Scales>>, \
   unpack_quant<layout::Quant<layout::Codes, zero, layout::Scales>>,              \
   &KernelTable::matmul_f32_##name, &KernelTable::matmul_i8_##name},
#include "kernels/packed_types.inc"
#undef PACKED_PLAIN
#undef PACKED_QUANT
};

const PackedType* find(DType dtype) {
  for (const PackedType& type : kTypes) {
    if (type.dtype == dtype) return &type;
  }
  return nullptr;
}

const PackedType& type_of(DType packed) {
  const PackedType* type = find(packed);
  CHECK(type != nullptr);
  return *type;
}

}  // namespace

bool has_packed_kernel(DType dtype) { return find(dtype) != nullptr; }

DType packed_dtype(DType dtype) { return has_packed_kernel(dtype) ? dtype : DType::kF32; }

bool has_i8_kernel(DType packed) {
  const PackedType* type = find(packed);
  return type && type->i8;
}

size_t packed_panel_bytes(DType packed, int64_t cols) {
  CHECK(cols >= 0);
  return (type_of(packed).panel_bytes(cols) + 63) / 64 * 64;
}

void unpack_row(const PackedMatrix& matrix, int64_t row, float* out) {
  CHECK(row >= 0 && row < matrix.rows);
  const auto* panel =
      reinterpret_cast<const uint8_t*>(matrix.data) + size_t(row / kPanelRows) * matrix.panel_bytes;
  type_of(matrix.dtype).unpack_row(panel, matrix.cols, int(row % kPanelRows), out);
}

MatmulF32 matmul_f32_kernel(const KernelTable& table, DType packed) {
  return table.*type_of(packed).f32;
}

MatmulI8 matmul_i8_kernel(const KernelTable& table, DType packed) {
  const PackedType& type = type_of(packed);
  return type.i8 ? table.*type.i8 : nullptr;
}

}  // namespace sluice
