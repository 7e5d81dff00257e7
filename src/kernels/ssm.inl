inline constexpr int kMaxTaps = 16;

// y[r] = silu(bias + sum over t of weight[t] x[r - taps + 1 + t]), 16 channels at a time
void conv_silu(const ConvArgs& a) {
  for (int64_t c = 0; c < a.channels; c += 16) {
    const int64_t n = at_most(a.channels - c, 16), tail = a.taps - 1;
    F32 weight[kMaxTaps], past[kMaxTaps];  // past[t % taps]: the input of `row t - tail`
    for (int64_t t = 0; t < a.taps; ++t)
      weight[t] = load_strided(a.weight + c * a.taps + t, a.taps, n);
    for (int64_t t = 0; t < tail; ++t) {
      past[t] = a.tail_in ? load_first(a.tail_in + t * a.tail_stride + c, n) : splat(0);
    }
    const F32 bias = a.bias ? load_first(a.bias + c, n) : splat(0);
    int64_t oldest = 0;
    for (int64_t r = 0; r < a.n; ++r) {
      past[(oldest + tail) % a.taps] = load_first(a.x + r * a.x_stride + c, n);
      F32 y = bias;
      for (int64_t t = 0; t < a.taps; ++t) y = fma(weight[t], past[(oldest + t) % a.taps], y);
      store_first(a.y + r * a.y_stride + c, silu(y), n);
      oldest = (oldest + 1) % a.taps;
    }
    for (int64_t t = 0; t < tail; ++t) {
      store_first(a.tail_out + t * a.tail_stride + c, past[(oldest + t) % a.taps], n);
    }
  }
}

// One token of one head. N lanes of 16 columns of the state at once:
// S[i] = decay S[i] + (dt B[i]) x; y = sum over i of C[i] S[i] + D x
template <int N>
inline void scan_columns(const SsmScanArgs& a, const float* state_in, float* state_out,
                         const float* x, const float* B, const float* C, float* y, float decay,
                         float dt, float D, int64_t last_lanes) {
  F32 input[N], total[N];
  for (int c = 0; c < N; ++c) {
    input[c] = load_first(x + 16 * c, c + 1 < N ? 16 : last_lanes);
    total[c] = splat(0);
  }
  for (int64_t i = 0; i < a.d_state; ++i) {
    const F32 b = splat(dt * B[i]), out = splat(C[i]);
    for (int c = 0; c < N; ++c) {
      const int64_t at = i * a.head_dim + 16 * c;
      const int64_t lanes = c + 1 < N ? 16 : last_lanes;
      F32 s = b * input[c];
      if (state_in) s = fma(splat(decay), load_first(state_in + at, lanes), s);
      store_first(state_out + at, s, lanes);
      total[c] = fma(out, s, total[c]);
    }
  }
  for (int c = 0; c < N; ++c) {
    store_first(y + 16 * c, fma(splat(D), input[c], total[c]), c + 1 < N ? 16 : last_lanes);
  }
}

// All tokens of one head: its state stays in the first-level cache.
inline void scan_head(const SsmScanArgs& a, int64_t h) {
  const int64_t group = h / (a.n_heads / a.n_groups);
  float* state_out = a.state_out + h * a.d_state * a.head_dim;
  const float* state_in = a.state_in ? a.state_in + h * a.d_state * a.head_dim : nullptr;
  for (int64_t r = 0; r < a.n; ++r) {
    const F32 raw = softplus(splat(a.dt[r * a.dt_stride + h] + a.dt_bias[h]));
    const F32 dt = min(splat(a.dt_max), max(splat(a.dt_min), raw));
    const float decay = lane0(exp(dt * splat(a.A[h])));
    const float* x = a.x + r * a.x_stride + h * a.head_dim;
    const float* B = a.B + r * a.B_stride + group * a.d_state;
    const float* C = a.C + r * a.C_stride + group * a.d_state;
    float* y = a.y + r * a.y_stride + h * a.head_dim;
    for (int64_t p = 0; p < a.head_dim; p += 64) {
      const int64_t lanes = at_most(a.head_dim - p, 64);
      const float* in = state_in ? state_in + p : nullptr;
      const auto scan = lanes > 48   ? scan_columns<4>
                        : lanes > 32 ? scan_columns<3>
                        : lanes > 16 ? scan_columns<2>
                                     : scan_columns<1>;
      scan(a, in, state_out + p, x + p, B, C, y + p, decay, lane0(dt), a.D[h],
           lanes - (lanes - 1) / 16 * 16);
    }
    state_in = state_out;
  }
}

// dt' = clamp(softplus(dt + dt_bias)); S = exp(dt' A) S + dt' B x^T; y = C S + D x
void ssm_scan(const SsmScanArgs& a) {
  for (int64_t h = a.first_head; h < a.last_head; ++h) scan_head(a, h);
}
