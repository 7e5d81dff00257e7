// Mamba-2 kernels: chunks, head ranges and in-place state change no bit.
#include <gtest/gtest.h>

#include <limits>

#include "kernels/test_cases.h"

namespace sluice {
namespace {

class Ssm : public IsaTest {};

TEST_P(Ssm, ConvolutionInChunksIsTheSame) {
  const int64_t n = 23, channels = 35, taps = 4;
  const std::vector<float> x = random_values(n * channels, 1);
  const std::vector<float> weight = random_values(channels * taps, 2);
  const std::vector<float> bias = random_values(channels, 3);
  const auto run = [&](int64_t chunk, int64_t width) {
    std::vector<float> y(x.size()), tail(size_t((taps - 1) * channels));
    for (int64_t first = 0; first < n; first += chunk) {
      for (int64_t c = 0; c < channels; c += width) {
        table().conv_silu({.x = x.data() + first * channels + c,
                           .weight = weight.data() + c * taps,
                           .bias = bias.data() + c,
                           .tail_in = first == 0 ? nullptr : tail.data() + c,
                           .tail_out = tail.data() + c,
                           .y = y.data() + first * channels + c,
                           .n = std::min(chunk, n - first),
                           .channels = std::min(width, channels - c),
                           .taps = taps,
                           .x_stride = channels,
                           .y_stride = channels,
                           .tail_stride = channels});
      }
    }
    y.insert(y.end(), tail.begin(), tail.end());
    return y;
  };
  const std::vector<float> expected = run(n, channels);
  for (int64_t chunk : {1, 2, 3, 10}) {
    EXPECT_EQ(run(chunk, channels), expected) << chunk;
    EXPECT_EQ(run(chunk, 5), expected) << chunk;
  }
}

TEST_P(Ssm, ScanInChunksAndHeadsIsTheSame) {
  const int64_t n = 17, n_heads = 6, head_dim = 24, d_state = 40, width = n_heads * head_dim;
  const std::vector<float> x = random_values(n * width, 1), B = random_values(n * d_state, 2);
  const std::vector<float> C = random_values(n * d_state, 3), dt = random_values(n * n_heads, 4);
  const std::vector<float> dt_bias = random_values(n_heads, 5), D = random_values(n_heads, 6);
  const std::vector<float> A = {-0.1f, -1, -2, -4, -8, -16};
  const auto run = [&](int64_t chunk, int64_t heads, bool in_place) {
    std::vector<float> y(x.size()), state(size_t(width * d_state)), next(state.size());
    for (int64_t first = 0; first < n; first += chunk) {
      std::vector<float>& out = in_place ? state : next;
      for (int64_t h = 0; h < n_heads; h += heads) {
        table().ssm_scan({.x = x.data() + first * width,
                          .B = B.data() + first * d_state,
                          .C = C.data() + first * d_state,
                          .dt = dt.data() + first * n_heads,
                          .dt_bias = dt_bias.data(),
                          .A = A.data(),
                          .D = D.data(),
                          .state_in = first == 0 ? nullptr : state.data(),
                          .state_out = out.data(),
                          .y = y.data() + first * width,
                          .n = std::min(chunk, n - first),
                          .n_heads = n_heads,
                          .head_dim = head_dim,
                          .d_state = d_state,
                          .n_groups = 1,
                          .first_head = h,
                          .last_head = std::min(h + heads, n_heads),
                          .x_stride = width,
                          .B_stride = d_state,
                          .C_stride = d_state,
                          .dt_stride = n_heads,
                          .y_stride = width,
                          .dt_min = 0,
                          .dt_max = std::numeric_limits<float>::infinity()});
      }
      if (!in_place) state.swap(next);
    }
    y.insert(y.end(), state.begin(), state.end());
    return y;
  };
  const std::vector<float> expected = run(n, n_heads, true);
  for (int64_t chunk : {1, 2, 5, 16}) {
    EXPECT_EQ(run(chunk, n_heads, true), expected) << chunk;
    EXPECT_EQ(run(chunk, 1, false), expected) << chunk;
    EXPECT_EQ(run(chunk, 4, false), expected) << chunk;
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Ssm, testing::ValuesIn(kIsaNames),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice
