// Speed of the weight-matrix kernels of every packed type on every ISA, on one thread.
// "dram": one row of x against 128 MB of weights; "l2": the same against 1 MB; the numbers after it
// are rows of x against 1 MB (512: 128 KB). bytes_per_second counts packed weights once per call,
// "MAC/s" is multiply-adds. Run with --benchmark_filter=avx512/q4_1 and, for two threads, twice at
// once.
#include "kernels/kernels.h"

#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "kernels/random_matrix.h"

namespace sluice {
namespace {

constexpr int64_t kCols = 2048;

/// Copies of one small packed matrix until `bytes` are full.
class Weights {
 public:
  Weights(DType dtype, size_t bytes) {
    RandomMatrix matrix(dtype, kPanelRows, kCols, 1);
    const PackedCopy panel(matrix.source());
    panel_bytes_ = int64_t(panel.matrix().panel_bytes);
    n_panels_ = std::max<int64_t>(1, int64_t(bytes) / panel_bytes_);
    constexpr size_t kHugePage = size_t{2} << 20;
    const size_t size = (size_t(n_panels_ * panel_bytes_) + kHugePage - 1) / kHugePage * kHugePage;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kHugePage, size)));
    madvise(data_.get(), size, MADV_HUGEPAGE);
    for (int64_t p = 0; p < n_panels_; ++p) {
      std::memcpy(data_.get() + p * panel_bytes_, panel.matrix().data, size_t(panel_bytes_));
    }
  }

  const std::byte* data() const { return data_.get(); }
  int64_t panel_bytes() const { return panel_bytes_; }
  int64_t n_panels() const { return n_panels_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte[], Free> data_;
  int64_t panel_bytes_, n_panels_;
};

void count(benchmark::State& state, const Weights& w, int64_t n) {
  state.SetBytesProcessed(state.iterations() * w.n_panels() * w.panel_bytes());
  state.counters["MAC/s"] = benchmark::Counter(double(n * w.n_panels() * kPanelRows * kCols),
                                               benchmark::Counter::kIsIterationInvariantRate);
}

void run_f32(benchmark::State& state, void (*kernel)(const MatmulF32Args&), DType dtype, int64_t n,
             size_t bytes) {
  const Weights w(dtype, bytes);
  RandomRows x(n, kCols, 1);
  std::vector<float> y(size_t(n * w.n_panels() * kPanelRows));
  for (auto _ : state) {
    kernel({w.data(), w.panel_bytes(), w.n_panels(), kCols, x.x(0), n, x.stride(), y.data(),
            w.n_panels() * kPanelRows});
  }
  count(state, w, n);
}

void run_i8(benchmark::State& state, const KernelTable& table, void (*kernel)(const MatmulI8Args&),
            DType dtype, int64_t n, size_t bytes) {
  const Weights w(dtype, bytes);
  RandomRows x(n, kCols, 1);
  table.quantize_i8({x.x(0), x.i8(), n, kCols, x.stride()});
  std::vector<float> y(size_t(n * w.n_panels() * kPanelRows));
  for (auto _ : state) {
    kernel({w.data(), w.panel_bytes(), w.n_panels(), kCols, x.i8(), n, y.data(),
            w.n_panels() * kPanelRows});
  }
  count(state, w, n);
}

void run_quantize(benchmark::State& state, const KernelTable& table) {
  RandomRows x(16, kCols, 1);
  for (auto _ : state) table.quantize_i8({x.x(0), x.i8(), 16, kCols, x.stride()});
  state.SetBytesProcessed(state.iterations() * 16 * kCols * 4);
}

void run_pack(benchmark::State& state, DType dtype) {
  RandomMatrix matrix(dtype, 256, kCols, 1);
  const size_t panel_bytes = packed_panel_bytes(dtype, kCols);
  std::vector<std::byte> out(panel_bytes * 16);
  for (auto _ : state) pack_panels(matrix.source(), dtype, 0, 16, out.data());
  state.SetBytesProcessed(state.iterations() * int64_t(out.size()));
}

struct Load {
  const char* name;
  int64_t n;
  size_t bytes;
};
constexpr size_t kMB = size_t{1} << 20;
constexpr Load kLoads[] = {{"dram", 1, 128 * kMB}, {"l2", 1, kMB}, {"2", 2, kMB},
                           {"4", 4, kMB},          {"8", 8, kMB},  {"512", 512, kMB / 8}};

template <class Body>
void add(const std::string& name, Body body) {
  benchmark::RegisterBenchmark(name.c_str(), body);
}

void add_all() {
  for (const KernelTable* table : supported_kernels()) {
    if (table == supported_kernels().back()) continue;  // the reference is not meant to be fast
    const std::string isa = table->isa;
    add(isa + "/quantize", [table](benchmark::State& s) { run_quantize(s, *table); });
    for (const Load& load : kLoads) {
      const std::string suffix = std::string("/") + load.name;
#define PACKED_PLAIN(name, dtype, Values)                                    \
  add(isa + "/" #name "/f32" + suffix, [table, &load](benchmark::State& s) { \
    run_f32(s, table->matmul_f32_##name, DType::dtype, load.n, load.bytes);  \
  });
#define PACKED_QUANT(name, dtype, Codes, zero, Scales)                            \
  PACKED_PLAIN(name, dtype, Codes)                                                \
  add(isa + "/" #name "/i8" + suffix, [table, &load](benchmark::State& s) {       \
    run_i8(s, *table, table->matmul_i8_##name, DType::dtype, load.n, load.bytes); \
  });
#include "kernels/packed_types.inc"
#undef PACKED_PLAIN
#undef PACKED_QUANT
    }
  }
  for (const DType dtype : kPackedTypes) {
    add(std::string("pack/") + info(dtype).name,
        [dtype](benchmark::State& s) { run_pack(s, dtype); });
  }
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  sluice::add_all();
  benchmark::RunSpecifiedBenchmarks();
}
