// Attention against a softmax in f64, and the promise that splitting and chunking change no bit.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/test_cases.h"
#include "kernels/thread_pool.h"

namespace sluice {
namespace {

constexpr int64_t kKvHeads = 2, kGroup = 3, kHeads = kKvHeads * kGroup;

/// A sequence of n positions with random q, k, v.
struct Sequence {
  int64_t n, dim, v_dim, window;
  bool f16;
  std::vector<float> q, k, v;
  TestCache cache;

  Sequence(int64_t n_positions, int64_t head_dim, int64_t v_head_dim, int64_t visible, bool half)
      : n(n_positions),
        dim(head_dim),
        v_dim(v_head_dim),
        window(visible),
        f16(half),
        q(random_values(n * kHeads * dim, 1, 3)),
        k(random_values(n * kKvHeads * dim, 2)),
        v(random_values(n * kKvHeads * v_dim, 3)),
        cache(half, kKvHeads, dim, v_dim, n) {}

  void store(const KernelTable& table, int64_t first, int64_t last) {
    const int64_t k_step = kKvHeads * dim, v_step = kKvHeads * v_dim;
    cache.store(table, {k.begin() + first * k_step, k.begin() + last * k_step},
                {v.begin() + first * v_step, v.begin() + last * v_step}, first);
  }

  /// Arguments for the rows at positions [first, last); y and q start at the first of them.
  AttendArgs rows(int64_t first, int64_t last, float* y) const {
    const int64_t first_span =
        window > 0 ? std::max<int64_t>(first - window + 1, 0) / kSpanPositions : 0;
    const int64_t end_span = (last - 1) / kSpanPositions + 1;
    return {.pages = cache.pages(),
            .q = q.data() + first * kHeads * dim,
            .y = y,
            .n = last - first,
            .position = first,
            .n_heads = kHeads,
            .window = window,
            .q_stride = kHeads * dim,
            .y_stride = kHeads * v_dim,
            .scale = 1 / std::sqrt(float(dim)),
            .first_row = 0,
            .last_row = last - first,
            .first_head = 0,
            .last_head = kKvHeads,
            .partial = nullptr,
            .partial_stride = 16 + (v_dim + 15) / 16 * 16,
            .n_spans = end_span - first_span,
            .first_span = first_span,
            .last_span = end_span};
  }
  void attend(const KernelTable& table, const AttendArgs& args) const {
    (f16 ? table.attend_f16 : table.attend_f32)(args);
  }
  std::vector<float> attend_all(const KernelTable& table) const {
    std::vector<float> y(size_t(n * kHeads * v_dim));
    attend(table, rows(0, n, y.data()));
    return y;
  }
};

/// One output row in f64, from k and v as they are.
std::vector<double> naive_row(const Sequence& s, int64_t position, int64_t head) {
  const int64_t kv_head = head / kGroup;
  const int64_t first = s.window > 0 ? std::max<int64_t>(0, position - s.window + 1) : 0;
  std::vector<double> weights;
  double sum = 0;
  for (int64_t j = first; j <= position; ++j) {
    double score = 0;
    for (int64_t d = 0; d < s.dim; ++d) {
      score += double(s.q[size_t((position * kHeads + head) * s.dim + d)]) *
               s.k[size_t((j * kKvHeads + kv_head) * s.dim + d)];
    }
    weights.push_back(std::exp(score / std::sqrt(double(s.dim))));
    sum += weights.back();
  }
  std::vector<double> y(size_t(s.v_dim), 0.0);
  for (int64_t j = first; j <= position; ++j) {
    for (int64_t d = 0; d < s.v_dim; ++d) {
      y[size_t(d)] +=
          weights[size_t(j - first)] / sum * s.v[size_t((j * kKvHeads + kv_head) * s.v_dim + d)];
    }
  }
  return y;
}

/// Squared error over squared size, of every row.
double nmse(const Sequence& s, const std::vector<float>& y) {
  double error = 0, size = 0;
  for (int64_t position = 0; position < s.n; ++position) {
    for (int64_t head = 0; head < kHeads; ++head) {
      const std::vector<double> expected = naive_row(s, position, head);
      for (int64_t d = 0; d < s.v_dim; ++d) {
        const double got = y[size_t((position * kHeads + head) * s.v_dim + d)];
        error += (got - expected[size_t(d)]) * (got - expected[size_t(d)]);
        size += expected[size_t(d)] * expected[size_t(d)];
      }
    }
  }
  return error / size;
}

class Attention : public IsaTest {};

TEST_P(Attention, EqualsANaiveSoftmaxOverLongContexts) {
  for (int64_t window : {0, 300}) {
    Sequence s(1100, 16, 24, window, false);
    s.store(table(), 0, s.n);
    EXPECT_LT(nmse(s, s.attend_all(table())), 1e-12) << window;
  }
}

TEST_P(Attention, HalfPrecisionCacheCostsLittle) {
  Sequence s(400, 32, 32, 0, true);
  s.store(table(), 0, s.n);
  EXPECT_LT(nmse(s, s.attend_all(table())), 1e-6);
}

// Every way to cut a prompt into chunks gives each row the same bits, although the rows of a chunk
// share loads and the cache behind a row is empty or not.
TEST_P(Attention, ChunkingChangesNoBit) {
  for (const bool f16 : {false, true}) {
    for (int64_t window : {0, 270}) {
      Sequence whole(400, 20, 36, window, f16);
      whole.store(table(), 0, whole.n);
      const std::vector<float> expected = whole.attend_all(table());
      for (int64_t chunk : {1, 7, 300}) {
        Sequence s(400, 20, 36, window, f16);
        std::vector<float> y(expected.size());
        for (int64_t first = 0; first < s.n; first += chunk) {
          const int64_t last = std::min(first + chunk, s.n);
          s.store(table(), first, last);
          s.attend(table(), s.rows(first, last, y.data() + first * kHeads * s.v_dim));
        }
        ASSERT_EQ(y, expected) << "chunks of " << chunk << ", window " << window;
      }
    }
  }
}

TEST_P(Attention, SplittingOverSpansAndThreadsChangesNoBit) {
  ThreadPool pool(3);
  for (int64_t window : {0, 520}) {
    Sequence s(1500, 64, 64, window, true);
    s.store(table(), 0, s.n);
    const int64_t first = 1490;
    std::vector<float> expected(size_t((s.n - first) * kHeads * s.v_dim));
    s.attend(table(), s.rows(first, s.n, expected.data()));
    for (int64_t width : {1, 2, 5}) {
      std::vector<float> y(expected.size());
      AttendArgs args = s.rows(first, s.n, y.data());
      std::vector<float> partial(size_t(args.n * kHeads * args.n_spans * args.partial_stride));
      args.partial = partial.data();
      const int64_t n_parts = (args.n_spans + width - 1) / width;
      pool.parallel_for(n_parts * kKvHeads, 1, [&](int64_t item, int64_t, int) {
        AttendArgs part = args;
        part.first_head = item % kKvHeads;
        part.last_head = part.first_head + 1;
        part.first_span += item / kKvHeads * width;
        part.last_span = std::min(part.first_span + width, args.last_span);
        s.attend(table(), part);
      });
      table().attend_merge(args);
      ASSERT_EQ(y, expected) << width << " spans at once, window " << window;
    }
  }
}

TEST_P(Attention, RowsAndHeadsOutsideTheRangeAreNotWritten) {
  Sequence s(20, 16, 16, 0, false);
  s.store(table(), 0, s.n);
  std::vector<float> y(size_t(s.n * kHeads * s.v_dim), -7.0f);
  AttendArgs args = s.rows(0, s.n, y.data());
  args.first_row = 3;
  args.last_row = 5;
  args.first_head = 1;
  s.attend(table(), args);
  for (int64_t row = 0; row < s.n; ++row) {
    for (int64_t head = 0; head < kHeads; ++head) {
      const bool inside = row >= 3 && row < 5 && head >= kGroup;
      EXPECT_EQ(y[size_t((row * kHeads + head) * s.v_dim)] != -7.0f, inside) << row << " " << head;
    }
  }
}

// Values that overflowed at one position spoil the rows that see it and no others.
TEST_P(Attention, WhatARowDoesNotSeeCannotSpoilIt) {
  const float bad[] = {std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::quiet_NaN()};
  for (float value : bad) {
    Sequence clean(40, 16, 16, 10, false), spoiled(40, 16, 16, 10, false);
    const int64_t at = 20;
    for (int64_t i = 0; i < kKvHeads * 16; ++i) {
      spoiled.k[size_t(at * kKvHeads * 16 + i)] = value;
      spoiled.v[size_t(at * kKvHeads * 16 + i)] = value;
    }
    clean.store(table(), 0, clean.n);
    spoiled.store(table(), 0, spoiled.n);
    const std::vector<float> a = clean.attend_all(table()), b = spoiled.attend_all(table());
    for (int64_t row = 0; row < clean.n; ++row) {
      const bool sees = row >= at && row < at + clean.window;
      for (int64_t i = row * kHeads * 16; i < (row + 1) * kHeads * 16; ++i) {
        if (sees) {
          EXPECT_FALSE(std::isfinite(b[size_t(i)])) << row;
        } else {
          ASSERT_EQ(a[size_t(i)], b[size_t(i)]) << row;
        }
      }
    }
  }
}

// Scores far apart, in different spans: the merge must neither overflow nor lose the larger one.
TEST_P(Attention, LargeScores) {
  Sequence s(600, 16, 16, 0, false);
  for (int64_t i = 0; i < 16; ++i) {
    s.k[size_t((300 * kKvHeads) * 16 + i)] = 200 * s.q[size_t((599 * kHeads) * 16 + i)];
  }
  s.store(table(), 0, s.n);
  std::vector<float> y(size_t(kHeads * s.v_dim));
  s.attend(table(), s.rows(599, 600, y.data()));
  for (int64_t d = 0; d < 16; ++d) {
    EXPECT_FLOAT_EQ(y[size_t(d)], s.v[size_t(300 * kKvHeads * 16 + d)]);
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Attention, testing::ValuesIn(kIsaNames),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice
