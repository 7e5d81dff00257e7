// Every row of kernels.inc on every instruction set against the scalar reference, and the vector
// instruction sets against each other, bit for bit. Matrix products: kernels_matmul_test.cc.
#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "kernels/test_cases.h"

namespace sluice {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t kLongest = 2 * 64 + 3;  // past two rounds of the widest loop

/// What a kernel made of one case. The error of a value is relative to itself, or to the largest of
/// the case where values may cancel.
struct Output {
  std::string label;
  std::vector<float> values;
  bool relative_to_itself = false;
};
using Outputs = std::vector<Output>;
/// All cases of one kernel, computed by a table.
using Cases = Outputs (*)(const KernelTable&);

std::string text(const char* name, int64_t a, int64_t b) {
  return std::string(name) + " " + std::to_string(a) + " at " + std::to_string(b);
}

/// Calls one(dim, offset) for every length and a few alignments.
void for_each_length(const std::function<void(int64_t, int64_t)>& one) {
  for (int64_t dim = 0; dim <= kLongest; ++dim) one(dim, dim % 5);
  for (int64_t offset = 0; offset < 16; ++offset) one(100, offset);
}

Outputs cases_rms_norm(const KernelTable& table) {
  Outputs outputs;
  for_each_length([&](int64_t dim, int64_t offset) {
    if (dim == 0) return;
    Guarded x(random_values(3 * (dim + 16), 1, 3), offset);
    Guarded weight(random_values(dim, 2), 1), y(3 * dim, offset);
    for (const float* w :
         {static_cast<const float*>(weight.data()), static_cast<const float*>(nullptr)}) {
      table.rms_norm({.x = x.data(),
                      .weight = w,
                      .y = y.data(),
                      .n = 3,
                      .dim = dim,
                      .x_stride = dim + 16,
                      .y_stride = dim,
                      .eps = 1e-5f});
      outputs.push_back({text("rms_norm", dim, offset), y.values()});
    }
  });
  Guarded bad({1, kNaN, 2, 1, kInf, 2, 0, 0, 0}, 0), y(9, 0);
  table.rms_norm({bad.data(), nullptr, y.data(), 3, 3, 3, 3, 0});
  std::vector<float> values = y.values();
  outputs.push_back({"NaN", {values[0], values[1], values[2]}});
  outputs.push_back({"inf", {values[3], values[4], values[5]}});
  return outputs;
}

Outputs cases_rms_norm_groups(const KernelTable& table) {
  Outputs outputs;
  for_each_length([&](int64_t dim, int64_t offset) {
    if (dim == 0) return;
    for (bool gated : {false, true}) {
      const int64_t n_groups = 3, width = n_groups * dim;
      Guarded x(random_values(2 * width, 1), offset), gate(random_values(2 * width, 2), 2);
      Guarded weight(random_values(width, 3), 1);
      table.rms_norm_groups({.x = x.data(),
                             .gate = gated ? gate.data() : nullptr,
                             .weight = weight.data(),
                             .y = x.data(),
                             .n = 2,
                             .n_groups = n_groups,
                             .dim = dim,
                             .weight_step = gated ? dim : 0,
                             .x_stride = width,
                             .gate_stride = width,
                             .y_stride = width,
                             .eps = 1e-6f});
      outputs.push_back({text(gated ? "gated" : "heads", dim, offset), x.values()});
    }
  });
  return outputs;
}

Outputs cases_rope(const KernelTable& table) {
  Outputs outputs;
  for (int64_t half = 0; half <= 35; ++half) {
    for (int64_t rest : {0, 5}) {
      const int64_t head_dim = 2 * half + rest, n = 3, n_heads = 2;
      Guarded x(random_values(n * n_heads * head_dim, 1), half % 7);
      const std::vector<float> cos = random_values(n * half, 2), sin = random_values(n * half, 3);
      table.rope({.x = x.data(),
                  .cos = cos.data(),
                  .sin = sin.data(),
                  .n = n,
                  .n_heads = n_heads,
                  .head_dim = head_dim,
                  .rotary_dim = 2 * half,
                  .x_stride = n_heads * head_dim,
                  .table_stride = half});
      outputs.push_back({text("rope", half, rest), x.values()});
    }
  }
  return outputs;
}

Outputs cases_add_scaled(const KernelTable& table) {
  Outputs outputs;
  for_each_length([&](int64_t dim, int64_t offset) {
    Guarded x(random_values(2 * dim, 1), offset), y(random_values(2 * dim, 2), 3);
    table.add_scaled({x.data(), y.data(), 2, dim, dim, dim, -0.7f});
    outputs.push_back({text("add_scaled", dim, offset), y.values()});
  });
  return outputs;
}

Outputs cases_add_bias(const KernelTable& table) {
  Outputs outputs;
  for_each_length([&](int64_t dim, int64_t offset) {
    Guarded bias(random_values(dim, 1), offset), y(random_values(2 * dim, 2), 3);
    table.add_bias({bias.data(), y.data(), 2, dim, dim});
    outputs.push_back({text("add_bias", dim, offset), y.values()});
  });
  return outputs;
}

Outputs cases_silu_mul(const KernelTable& table) {
  Outputs outputs;
  for_each_length([&](int64_t dim, int64_t offset) {
    Guarded gate(random_values(2 * dim, 1, 20), offset), up(random_values(2 * dim, 2), 3);
    table.silu_mul({gate.data(), up.data(), up.data(), 2, dim, dim, dim, dim});
    outputs.push_back({text("silu_mul", dim, offset), up.values(), true});
  });
  Guarded gate({kNaN, kInf, 88, 100, -80, 1e30f, 0}, 0), y({1, 1, 1, 1, 1, 1, 1}, 0);
  table.silu_mul({gate.data(), y.data(), y.data(), 1, 7, 7, 7, 7});
  outputs.push_back({"edges", y.values(), true});
  return outputs;
}

Outputs cases_scale(const KernelTable& table) {
  Outputs outputs;
  for_each_length([&](int64_t dim, int64_t offset) {
    Guarded x(random_values(2 * dim, 1), offset), y(2 * dim, 3);
    table.scale({x.data(), y.data(), 2, dim, dim, dim, 3.3f});
    outputs.push_back({text("scale", dim, offset), y.values(), true});
  });
  return outputs;
}

Outputs cases_exp(const KernelTable& table) {
  Outputs outputs;
  for_each_length([&](int64_t n, int64_t offset) {
    Guarded x(random_values(n, 1, 30), offset), y(n, 3);
    table.exp({x.data(), y.data(), n});
    outputs.push_back({text("exp", n, offset), y.values(), true});
  });
  std::vector<float> sweep;
  for (float x = -90; x < 90; x += 0.00731f) sweep.push_back(x);
  Guarded x(sweep, 0);
  table.exp({x.data(), x.data(), int64_t(sweep.size())});
  outputs.push_back({"sweep", x.values(), true});
  Guarded edges({0, -0.0f, kInf, -kInf, kNaN, 88.7f, 88.73f, -87.3f, -87.4f, -1000, 1000}, 0);
  table.exp({edges.data(), edges.data(), 11});
  outputs.push_back({"edges", edges.values(), true});
  return outputs;
}

Outputs cases_argmax(const KernelTable& table) {
  Outputs outputs;
  const auto add = [&](const std::string& label, std::vector<float> values, int64_t offset) {
    Guarded x(values, offset);
    float value = 0;
    int64_t index = -1;
    table.argmax({x.data(), int64_t(values.size()), &value, &index});
    outputs.push_back({label, {value, float(index)}});
  };
  for_each_length([&](int64_t n, int64_t offset) {
    std::vector<float> x = random_values(n, uint32_t(n), 1);
    add(text("argmax", n, offset), x, offset);
    for (float& v : x) v = -std::fabs(std::round(v));  // many ties, nothing above zero
    add(text("ties", n, offset), x, offset);
  });
  add("NaN", {1, kNaN, 3, kNaN, 3}, 0);
  add("only NaN", {kNaN, kNaN}, 0);
  add("infinities", {-kInf, kInf, kInf}, 0);
  add("minus infinity", {kNaN, -kInf, -kInf}, 0);
  return outputs;
}

Outputs cases_sum_exp(const KernelTable& table) {
  Outputs outputs;
  for (int64_t n : {0, 1, 15, 16, 17, 255, 256, 257, 511, 50000}) {
    Guarded x(random_values(n, 1, 4), n % 16);
    double sum = -1;
    table.sum_exp({x.data(), n, 9.0f, &sum});
    outputs.push_back({text("sum_exp", n, 0), {float(sum)}});
  }
  return outputs;
}

Outputs kv_store_cases(const KernelTable& table, bool f16) {
  Outputs outputs;
  for (int64_t dim : {1, 8, 16, 24, 64, 67}) {
    const int64_t v_dim = dim + 3, n_heads = 2, n = 45;
    TestCache cache(f16, n_heads, dim, v_dim, 128);
    std::vector<float> k = random_values(n * n_heads * dim, 1, 10);
    const std::vector<float> v = random_values(n * n_heads * v_dim, 2);
    const float edges[] = {1e9f, -1e9f, 65519, 65520, 1e-8f, 5.9e-8f, 6.1e-5f, kNaN, 2049, 2051};
    std::copy(std::begin(edges), std::end(edges), k.begin());
    cache.store(table, k, v, 30);
    Output output{text("kv_store", dim, v_dim), {}};
    for (const auto* bytes : {&cache.k_bytes(), &cache.v_bytes()}) {
      // Two bytes as one number: exact in f32, and NaN stays NaN whatever its payload.
      for (size_t i = 0; i + 1 < bytes->size(); i += 2) {
        const int half = (*bytes)[i] | (*bytes)[i + 1] << 8;
        const bool is_nan = f16 && (half & 0x7c00) == 0x7c00 && (half & 0x3ff) != 0;
        output.values.push_back(is_nan ? kNaN : float(half));
      }
    }
    outputs.push_back(output);
  }
  return outputs;
}
Outputs cases_kv_store_f32(const KernelTable& table) { return kv_store_cases(table, false); }
Outputs cases_kv_store_f16(const KernelTable& table) { return kv_store_cases(table, true); }

struct AttentionCase {
  int64_t n_kv_heads, group, head_dim, v_head_dim, position, n, window;
};

Outputs attend_cases(const KernelTable& table, bool f16, bool in_spans) {
  Outputs outputs;
  for (const AttentionCase& c : std::vector<AttentionCase>{{1, 1, 16, 16, 0, 1, 0},
                                                           {2, 3, 64, 64, 250, 20, 0},
                                                           {1, 4, 24, 20, 0, 40, 0},
                                                           {3, 2, 8, 40, 600, 7, 0},
                                                           {1, 7, 33, 96, 300, 3, 100},
                                                           {2, 1, 128, 128, 500, 40, 17},
                                                           {1, 12, 80, 16, 510, 5, 1},
                                                           {1, 5, 512, 512, 20, 3, 0}}) {
    const int64_t n_positions = c.position + c.n, n_heads = c.n_kv_heads * c.group;
    TestCache cache(f16, c.n_kv_heads, c.head_dim, c.v_head_dim, n_positions);
    cache.store(reference_table(), random_values(n_positions * c.n_kv_heads * c.head_dim, 1),
                random_values(n_positions * c.n_kv_heads * c.v_head_dim, 2), 0);
    const std::vector<float> q = random_values(c.n * n_heads * c.head_dim, 3, 2);
    const int64_t y_dim = n_heads * c.v_head_dim, stride = 16 + (c.v_head_dim + 15) / 16 * 16;
    const int64_t first_span =
        c.window > 0 ? std::max<int64_t>(c.position - c.window + 1, 0) / kSpanPositions : 0;
    const int64_t n_spans = (n_positions - 1) / kSpanPositions - first_span + 1;
    Guarded y(c.n * y_dim, 1), partial(c.n * n_heads * n_spans * stride, 0);
    const AttendArgs args{.pages = cache.pages(),
                          .q = q.data(),
                          .y = y.data(),
                          .n = c.n,
                          .position = c.position,
                          .n_heads = n_heads,
                          .window = c.window,
                          .q_stride = n_heads * c.head_dim,
                          .y_stride = y_dim,
                          .scale = 1 / std::sqrt(float(c.head_dim)),
                          .first_row = 0,
                          .last_row = c.n,
                          .first_head = 0,
                          .last_head = c.n_kv_heads,
                          .partial = in_spans ? partial.data() : nullptr,
                          .partial_stride = stride,
                          .n_spans = n_spans,
                          .first_span = first_span,
                          .last_span = first_span + n_spans};
    (f16 ? table.attend_f16 : table.attend_f32)(args);
    if (in_spans) table.attend_merge(args);
    partial.values();
    outputs.push_back({text("attend", c.head_dim, c.position), y.values()});
  }
  return outputs;
}
Outputs cases_attend_f32(const KernelTable& table) { return attend_cases(table, false, false); }
Outputs cases_attend_f16(const KernelTable& table) { return attend_cases(table, true, false); }
Outputs cases_attend_merge(const KernelTable& table) { return attend_cases(table, false, true); }

Outputs cases_conv_silu(const KernelTable& table) {
  Outputs outputs;
  for (int64_t taps : {2, 3, 4, 7, 16}) {
    for (int64_t channels : {1, 15, 16, 17, 40}) {
      for (int64_t n : {0, 1, 2, 3, 20}) {
        Guarded x(random_values(n * channels, 1), 3), y(n * channels, 5);
        Guarded tail(random_values((taps - 1) * channels, 2), 1);
        const std::vector<float> weight = random_values(taps * channels, 3);
        const std::vector<float> bias = random_values(channels, 4);
        const bool fresh = n % 2 == 1;
        table.conv_silu({.x = x.data(),
                         .weight = weight.data(),
                         .bias = fresh ? nullptr : bias.data(),
                         .tail_in = fresh ? nullptr : tail.data(),
                         .tail_out = tail.data(),
                         .y = y.data(),
                         .n = n,
                         .channels = channels,
                         .taps = taps,
                         .x_stride = channels,
                         .y_stride = channels,
                         .tail_stride = channels});
        outputs.push_back({text("conv", taps, channels), y.values()});
        outputs.push_back({text("tail", taps, n), tail.values()});
      }
    }
  }
  return outputs;
}

Outputs cases_ssm_scan(const KernelTable& table) {
  Outputs outputs;
  for (int64_t head_dim : {1, 8, 16, 20, 33, 50, 64, 72, 130}) {
    for (bool fresh : {false, true}) {
      const int64_t n = 9, n_heads = 4, n_groups = 2, d_state = 19, width = n_heads * head_dim;
      Guarded x(random_values(n * width, 1), 3), y(n * width, 1);
      Guarded state(random_values(width * d_state, 2), 2), out(width * d_state, 5);
      const std::vector<float> B = random_values(n * n_groups * d_state, 3);
      const std::vector<float> C = random_values(n * n_groups * d_state, 4);
      std::vector<float> dt = random_values(n * n_heads, 5, 2);
      dt[0] = 30;  // softplus is the identity
      dt[1] = -30;
      table.ssm_scan({.x = x.data(),
                      .B = B.data(),
                      .C = C.data(),
                      .dt = dt.data(),
                      .dt_bias = std::vector<float>{0.1f, -0.5f, 1, -3}.data(),
                      .A = std::vector<float>{-1, -0.1f, -8, -2}.data(),
                      .D = std::vector<float>{1, 0, -1, 2}.data(),
                      .state_in = fresh ? nullptr : state.data(),
                      .state_out = out.data(),
                      .y = y.data(),
                      .n = n,
                      .n_heads = n_heads,
                      .head_dim = head_dim,
                      .d_state = d_state,
                      .n_groups = n_groups,
                      .first_head = 0,
                      .last_head = n_heads,
                      .x_stride = width,
                      .B_stride = n_groups * d_state,
                      .C_stride = n_groups * d_state,
                      .dt_stride = n_heads,
                      .y_stride = width,
                      .dt_min = 0.001f,
                      .dt_max = fresh ? kInf : 2.0f});
      outputs.push_back({text("y", head_dim, fresh), y.values()});
      outputs.push_back({text("state", head_dim, fresh), out.values()});
    }
  }
  return outputs;
}

// Tested in kernels_matmul_test.cc.
#define KERNEL(name, Args, tolerance) constexpr Cases cases_##name = nullptr;
#include "kernels/matmul.inc"
#undef KERNEL

struct Row {
  const char* name;
  Cases cases;
  double tolerance;
};
constexpr Row kRows[] = {
#define KERNEL(name, Args, tolerance) {#name, cases_##name, tolerance},
#include "kernels/kernels.inc"
#undef KERNEL
};

void expect_near(const Outputs& got, const Outputs& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    const std::vector<float>&a = got[i].values, &b = expected[i].values;
    ASSERT_EQ(a.size(), b.size()) << got[i].label;
    double largest = std::numeric_limits<float>::min();
    for (float v : b) {
      if (std::isfinite(v)) largest = std::max(largest, double(std::fabs(v)));
    }
    for (size_t j = 0; j < a.size(); ++j) {
      if (!std::isfinite(b[j]) || tolerance == 0) {
        ASSERT_TRUE(a[j] == b[j] || same_bits(a[j], b[j]))
            << got[i].label << " [" << j << "]: " << a[j] << " for " << b[j];
        continue;
      }
      const double scale =
          got[i].relative_to_itself
              ? std::max(double(std::fabs(b[j])), double(std::numeric_limits<float>::min()))
              : largest;
      const double error = std::fabs(double(a[j]) - b[j]) / scale;
      ASSERT_LE(error, tolerance) << got[i].label << " [" << j << "]: " << a[j] << " for " << b[j];
    }
  }
}

class KernelIsa : public IsaTest {};

TEST_P(KernelIsa, AgreeWithTheReference) {
  for (const Row& row : kRows) {
    if (!row.cases) continue;
    SCOPED_TRACE(row.name);
    const Outputs got = row.cases(table());
    ASSERT_FALSE(got.empty());
    expect_near(got, row.cases(reference_table()), row.tolerance);
  }
}

TEST(Kernels, VectorInstructionSetsGiveTheSameBits) {
  const KernelTable *wide = find_table("avx512"), *narrow = find_table("avx2");
  if (!wide || !narrow) GTEST_SKIP() << "this machine cannot run avx512 and avx2";
  for (const Row& row : kRows) {
    if (!row.cases) continue;
    const Outputs a = row.cases(*wide), b = row.cases(*narrow);
    ASSERT_EQ(a.size(), b.size()) << row.name;
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].values.size(), b[i].values.size()) << a[i].label;
      for (size_t j = 0; j < a[i].values.size(); ++j) {
        ASSERT_TRUE(same_bits(a[i].values[j], b[i].values[j]))
            << row.name << ": " << a[i].label << " [" << j << "]: " << a[i].values[j] << ", "
            << b[i].values[j];
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, KernelIsa, testing::ValuesIn(kIsaNames),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice
