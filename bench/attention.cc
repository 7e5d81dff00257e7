// Attention of one block on one thread, per instruction set and cache type.
#include <benchmark/benchmark.h>

#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace {

using sluice::KernelTable;

struct Shape {
  const char* name;
  int64_t n_heads, n_kv_heads, head_dim;
};
constexpr Shape kShapes[] = {{"9q_3kv_64", 9, 3, 64}, {"32q_8kv_128", 32, 8, 128}};

// Keys and values of kBlocks blocks that take turns, so that they come from where they would in a
// model.
struct Cache {
  static constexpr size_t kBlocks = 16;

  Cache(const KernelTable& table, Shape shape, bool f16, int64_t depth)
      : page_of(size_t((depth + sluice::kPagePositions - 1) / sluice::kPagePositions)) {
    const int64_t page_bytes =
        shape.n_kv_heads * shape.head_dim * sluice::kPagePositions * (f16 ? 2 : 4);
    block_bytes = int64_t(page_of.size()) * page_bytes;
    std::iota(page_of.begin(), page_of.end(), 0);
    pages = {.k = nullptr,
             .v = nullptr,
             .k_page_bytes = page_bytes,
             .v_page_bytes = page_bytes,
             .page_of = page_of.data(),
             .n_kv_heads = shape.n_kv_heads,
             .head_dim = shape.head_dim,
             .v_head_dim = shape.head_dim};
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> row(size_t(shape.n_kv_heads * shape.head_dim));
    for (float& value : row) value = normal(random);
    for (size_t b = 0; b < kBlocks; ++b) {
      k[b].resize(size_t(block_bytes));
      v[b].resize(size_t(block_bytes));
      const sluice::KvStoreArgs args{.pages = block(b),
                                     .k = row.data(),
                                     .v = row.data(),
                                     .n = depth,
                                     .position = 0,
                                     .k_stride = 0,
                                     .v_stride = 0};
      (f16 ? table.kv_store_f16 : table.kv_store_f32)(args);
    }
  }

  sluice::KvPages block(size_t b) {
    pages.k = k[b % kBlocks].data();
    pages.v = v[b % kBlocks].data();
    return pages;
  }

  std::vector<int32_t> page_of;
  sluice::KvPages pages;
  int64_t block_bytes;
  std::vector<uint8_t> k[kBlocks], v[kBlocks];
};

// `n` rows whose last stands at position depth - 1.
void attend(benchmark::State& state, const KernelTable& table, Shape shape, bool f16, int64_t n,
            int64_t depth) {
  Cache cache(table, shape, f16, depth);
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  const int64_t q_dim = shape.n_heads * shape.head_dim;
  std::vector<float> q(size_t(n * q_dim)), y(q.size());
  for (float& x : q) x = normal(random);
  size_t block = 0;
  for (auto _ : state) {
    (f16 ? table.attend_f16 : table.attend_f32)({.pages = cache.block(block++),
                                                 .q = q.data(),
                                                 .y = y.data(),
                                                 .n = n,
                                                 .position = depth - n,
                                                 .n_heads = shape.n_heads,
                                                 .window = 0,
                                                 .q_stride = q_dim,
                                                 .y_stride = q_dim,
                                                 .scale = 1 / std::sqrt(float(shape.head_dim)),
                                                 .first_row = 0,
                                                 .last_row = n,
                                                 .first_head = 0,
                                                 .last_head = shape.n_kv_heads,
                                                 .partial = nullptr,
                                                 .partial_stride = 0,
                                                 .n_spans = 0,
                                                 .first_span = 0,
                                                 .last_span = 0});
    benchmark::ClobberMemory();
  }
  const double seen = double(n) * double(depth) - double(n) * double(n - 1) / 2;
  state.counters["multiply_adds"] =
      benchmark::Counter(2 * seen * double(q_dim), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["cache_bytes"] = benchmark::Counter(2 * double(cache.block_bytes),
                                                     benchmark::Counter::kIsIterationInvariantRate);
}

void add(const KernelTable& table, Shape shape, bool f16, int64_t n, int64_t depth) {
  const std::string name = std::string(n == 1 ? "decode/" : "prefill/") + shape.name + "/" +
                           table.isa + (f16 ? "/f16/" : "/f32/") + std::to_string(depth);
  benchmark::RegisterBenchmark(name.c_str(), [&table, shape, f16, n, depth](benchmark::State& s) {
    attend(s, table, shape, f16, n, depth);
  })->Unit(benchmark::kMicrosecond);
}

}  // namespace

int main(int argc, char** argv) {
  for (const KernelTable* table : sluice::supported_kernels()) {
    if (table->isa == std::string("scalar")) continue;
    for (const Shape& shape : kShapes) {
      for (bool f16 : {true, false}) {
        add(*table, shape, f16, 1, 2048);
        add(*table, shape, f16, 512, 512);
      }
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
