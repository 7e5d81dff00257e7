#include "weights/slice.h"

#include <algorithm>

#include "base/error.h"
#include "weights/mapped_file.h"

namespace sluice {
namespace {

constexpr int64_t kMaxSize = int64_t(1) << 40;  // keeps the products below from overflowing

std::vector<int64_t> without_ones(std::span<const int64_t> shape) {
  std::vector<int64_t> out;
  for (const int64_t size : shape) {
    if (size != 1) out.push_back(size);
  }
  return out;
}

[[noreturn]] void wrong_shape(const Slice& slice, std::span<const int64_t> expected) {
  throw Error(
      ErrorCode::kInvalidInput, "{}: expected {}, got {}", slice.where,
      slice.expert < 0 ? shape_text(expected) : "(experts, " + shape_text(expected).substr(1),
      shape_text(slice.tensor->shape));
}

/// The shape of one expert's tensor, or of the tensor; throws when there is no such expert.
std::span<const int64_t> inner_shape(const Slice& slice, std::span<const int64_t> expected) {
  const std::span<const int64_t> shape = slice.tensor->shape;
  if (slice.expert < 0) return shape;
  if (shape.empty()) wrong_shape(slice, expected);
  if (slice.expert >= shape[0]) {
    throw Error(ErrorCode::kInvalidInput, "{}: expected more than {} experts, got {}", slice.where,
                slice.expert, shape[0]);
  }
  return shape.subspan(1);
}

}  // namespace

MatrixSource slice_matrix(const Slice& slice, int64_t rows, int64_t cols) {
  const TensorView& tensor = *slice.tensor;
  const int64_t expected[] = {std::min(rows, kMaxSize) * slice.n_parts, cols};
  const std::span<const int64_t> actual = inner_shape(slice, expected);
  const bool fits =
      rows > 0 && rows <= kMaxSize && cols > 0 && cols % info(tensor.dtype).block_elements == 0;
  if (!fits || without_ones(actual) != without_ones(expected)) wrong_shape(slice, expected);
  MatrixSource source{.dtype = tensor.dtype, .rows = rows, .cols = cols, .where = slice.where};
  source.row_bytes = bytes_of(tensor.dtype, cols);
  const int64_t matrix = int64_t(std::max(slice.expert, 0)) * slice.n_parts + slice.part;
  source.data = tensor.data + size_t(matrix * rows) * source.row_bytes;
  return source;
}

std::vector<float> slice_vector(const Slice& slice, int64_t n) {
  const TensorView& tensor = *slice.tensor;
  const int64_t expected[] = {std::min(n, kMaxSize) * slice.n_parts};
  int64_t values = 1;
  for (const int64_t size : inner_shape(slice, expected)) values *= size;
  if (n <= 0 || n > kMaxSize || values != expected[0]) wrong_shape(slice, expected);
  const int64_t begin = (int64_t(std::max(slice.expert, 0)) * slice.n_parts + slice.part) * n;
  const int block = info(tensor.dtype).block_elements;
  if (begin % block != 0 || n % block != 0) {
    throw Error(ErrorCode::kUnsupported,
                "{}: expected whole blocks of {} values, got values {} to {}", slice.where, block,
                begin, begin + n);
  }
  std::vector<float> out(static_cast<size_t>(n));
  try {
    decode_to_f32(tensor.dtype, tensor.data + bytes_of(tensor.dtype, begin), n, out.data());
  } catch (const Error& e) {
    throw Error(e.code(), "{}: {}", slice.where, e.what());
  }
  return out;
}

void release_matrix(const MatrixSource& source) {
  release({source.data, size_t(source.rows) * source.row_bytes});
}

}  // namespace sluice
