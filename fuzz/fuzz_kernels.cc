// Packing and matrix multiplication of any bytes as weights: every ISA against the reference,
// vector ISAs against each other bit for bit, and each row of x alone against all rows together.
// Input: rows, columns, rows of x, then activations and weights (repeated as needed).
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/packed.h"
#include "kernels/random_matrix.h"

namespace sluice {
namespace {

using Values = std::vector<float>;

void require(bool condition) {
  if (!condition) std::abort();
}

/// Bytes of the input, from the start again when they run out.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t byte() { return data_[at_++ % size_]; }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

Values multiply(const KernelTable& table, bool i8, const PackedMatrix& w, RandomRows& x,
                int64_t first, int64_t n) {
  const int64_t width = w.n_panels() * kPanelRows, panel_bytes = int64_t(w.panel_bytes);
  Values y(size_t(n * width));
  if (i8) {
    matmul_i8_kernel(table, w.dtype)(
        {w.data, panel_bytes, w.n_panels(), w.cols, from_row(x.i8(), first), n, y.data(), width});
  } else {
    matmul_f32_kernel(table, w.dtype)(
        {w.data, panel_bytes, w.n_panels(), w.cols, x.x(first), n, x.stride(), y.data(), width});
  }
  return y;
}

bool same_bits(const float* a, const float* b, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if (std::memcmp(a + i, b + i, 4) != 0 && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  }
  return true;
}

void check(const PackedMatrix& w, RandomRows& x, int64_t n, bool i8) {
  const Values expected = multiply(*supported_kernels().back(), i8, w, x, 0, n);
  const size_t width = size_t(w.n_panels() * kPanelRows);
  Values first_isa;
  for (const KernelTable* table : supported_kernels()) {
    if (table == supported_kernels().back()) break;
    const Values y = multiply(*table, i8, w, x, 0, n);
    if (first_isa.empty()) first_isa = y;
    require(same_bits(y.data(), first_isa.data(), y.size()));
    for (int64_t r = 0; r < n; ++r) {
      const Values alone = multiply(*table, i8, w, x, r, 1);
      require(same_bits(alone.data(), &y[size_t(r) * width], width));
    }
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t row = 0; row < w.rows; ++row) {
        const size_t at = size_t(r) * width + size_t(row);
        const double magnitude = terms(w, row, x.x(r));
        if (!(magnitude < 1e30)) continue;  // partial sums may overflow
        require(std::fabs(double(y[at]) - double(expected[at])) <= 4e-6 * magnitude + 1e-37);
      }
    }
  }
}

/// One type, with a shape, activations and weights from the input.
void check_type(DType dtype, Input input) {
  const int64_t block = info(dtype).block_elements;
  MatrixSource source;
  source.dtype = dtype;
  source.rows = 1 + input.byte() % 40;
  source.cols = block == 1 ? 1 + input.byte() % 100 : block * (1 + input.byte() % (512 / block));
  source.row_bytes = bytes_of(dtype, source.cols);
  const int64_t n = 1 + input.byte() % 12;

  RandomRows x(n, source.cols, 0);
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t k = 0; k < source.cols; ++k) x.x(r)[k] = float(int8_t(input.byte())) / 16;
  }
  std::vector<uint8_t> bytes(size_t(source.rows) * source.row_bytes);
  for (uint8_t& b : bytes) b = input.byte();
  source.data = reinterpret_cast<const std::byte*>(bytes.data());

  const PackedCopy packed(source);
  check(packed.matrix(), x, n, false);
  if (has_i8_kernel(dtype)) {
    kernels().quantize_i8({x.x(0), x.i8(), n, source.cols, x.stride()});
    check(packed.matrix(), x, n, true);
  }
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  for (const sluice::DType dtype : sluice::kPackedTypes) {
    sluice::check_type(dtype, sluice::Input(data, size));
  }
  return 0;
}
