// y[r][c] = silu(bias[c] + sum over t of weight[c][t] * x[r - taps + 1 + t][c])
void conv_silu(const ConvArgs& a) {
  const int64_t tail = a.taps - 1;
  std::vector<float> inputs(size_t(tail + a.n));  // of one channel: the tail, then the rows
  for (int64_t c = 0; c < a.channels; ++c) {
    for (int64_t t = 0; t < tail; ++t) {
      inputs[size_t(t)] = a.tail_in ? a.tail_in[t * a.tail_stride + c] : 0.0f;
    }
    for (int64_t r = 0; r < a.n; ++r) {
      inputs[size_t(tail + r)] = a.x[r * a.x_stride + c];
      double y = a.bias ? a.bias[c] : 0.0f;
      for (int64_t t = 0; t < a.taps; ++t) {
        y += double(a.weight[c * a.taps + t]) * inputs[size_t(r + t)];
      }
      a.y[r * a.y_stride + c] = float(silu(y));
    }
    for (int64_t t = 0; t < tail; ++t) a.tail_out[t * a.tail_stride + c] = inputs[size_t(a.n + t)];
  }
}

// dt' = clamp(softplus(dt + dt_bias)); S = exp(dt' A) S + dt' B x^T; y = C S + D x
void ssm_scan(const SsmScanArgs& a) {
  const int64_t dim = a.head_dim;
  for (int64_t h = a.first_head; h < a.last_head; ++h) {
    const int64_t group = h / (a.n_heads / a.n_groups);
    float* state = a.state_out + h * a.d_state * dim;
    for (int64_t i = 0; i < a.d_state * dim; ++i) {
      state[i] = a.state_in ? a.state_in[h * a.d_state * dim + i] : 0.0f;
    }
    for (int64_t r = 0; r < a.n; ++r) {
      const double raw = double(a.dt[r * a.dt_stride + h]) + a.dt_bias[h];
      const double softplus = std::max(raw, 0.0) + std::log1p(std::exp(-std::fabs(raw)));
      const double dt = std::min(std::max(softplus, double(a.dt_min)), double(a.dt_max));
      const double decay = std::exp(dt * a.A[h]);
      for (int64_t p = 0; p < dim; ++p) {
        const double x = a.x[r * a.x_stride + h * dim + p];
        double y = a.D[h] * x;
        for (int64_t i = 0; i < a.d_state; ++i) {
          const double B = a.B[r * a.B_stride + group * a.d_state + i];
          float& s = state[i * dim + p];
          s = float(decay * s + dt * B * x);
          y += double(a.C[r * a.C_stride + group * a.d_state + i]) * s;
        }
        a.y[r * a.y_stride + h * dim + p] = float(y);
      }
    }
  }
}
