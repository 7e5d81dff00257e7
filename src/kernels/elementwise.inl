// x1' = x1 cos - x2 sin, x2' = x2 cos + x1 sin, for x2 half the rotated dims after x1
void rope(const RopeArgs& a) {
  const int64_t half = a.rotary_dim / 2;
  for (int64_t r = 0; r < a.n; ++r) {
    const float* cos = a.cos + r * a.table_stride;
    const float* sin = a.sin + r * a.table_stride;
    for (int64_t h = 0; h < a.n_heads; ++h) {
      float* x = a.x + r * a.x_stride + h * a.head_dim;
      for (int64_t i = 0; i < half; i += 16) {
        const int64_t n = at_most(half - i, 16);
        const F32 c = load_first(cos + i, n), s = load_first(sin + i, n);
        const F32 x1 = load_first(x + i, n), x2 = load_first(x + half + i, n);
        store_first(x + i, fnma(x2, s, x1 * c), n);
        store_first(x + half + i, fma(x1, s, x2 * c), n);
      }
    }
  }
}

// y = scale x + y
void add_scaled(const AddScaledArgs& a) {
  const F32 scale = splat(a.scale);
  for (int64_t r = 0; r < a.n; ++r) {
    const float* x = a.x + r * a.x_stride;
    float* y = a.y + r * a.y_stride;
    for (int64_t i = 0; i < a.dim; i += 16) {
      const int64_t n = at_most(a.dim - i, 16);
      store_first(y + i, fma(scale, load_first(x + i, n), load_first(y + i, n)), n);
    }
  }
}

// y = y + bias
void add_bias(const AddBiasArgs& a) {
  for (int64_t r = 0; r < a.n; ++r) {
    float* y = a.y + r * a.y_stride;
    for (int64_t i = 0; i < a.dim; i += 16) {
      const int64_t n = at_most(a.dim - i, 16);
      store_first(y + i, load_first(y + i, n) + load_first(a.bias + i, n), n);
    }
  }
}

// y = gate / (1 + e^-gate) * up
void silu_mul(const SiluMulArgs& a) {
  for (int64_t r = 0; r < a.n; ++r) {
    const float* gate = a.gate + r * a.gate_stride;
    const float* up = a.up + r * a.up_stride;
    float* y = a.y + r * a.y_stride;
    for (int64_t i = 0; i < a.dim; i += 16) {
      const int64_t n = at_most(a.dim - i, 16);
      store_first(y + i, silu(load_first(gate + i, n)) * load_first(up + i, n), n);
    }
  }
}

// y = scale x
void scale(const ScaleArgs& a) {
  for (int64_t r = 0; r < a.n; ++r) {
    const float* x = a.x + r * a.x_stride;
    float* y = a.y + r * a.y_stride;
    for (int64_t i = 0; i < a.dim; i += 16) {
      const int64_t n = at_most(a.dim - i, 16);
      store_first(y + i, splat(a.scale) * load_first(x + i, n), n);
    }
  }
}

// y = e^x
void exp(const ExpArgs& a) {
  for (int64_t i = 0; i < a.n; i += 16) {
    const int64_t n = at_most(a.n - i, 16);
    store_first(a.y + i, exp(load_first(a.x + i, n)), n);
  }
}

// The lowest index of the largest value
void argmax(const ArgmaxArgs& a) {
  const F32 none = splat(-__builtin_inff());
  F32 m0 = none, m1 = none, m2 = none, m3 = none;
  int64_t i = 0;
  for (; i + 64 <= a.n; i += 64) {
    m0 = max(load(a.x + i), m0);
    m1 = max(load(a.x + i + 16), m1);
    m2 = max(load(a.x + i + 32), m2);
    m3 = max(load(a.x + i + 48), m3);
  }
  for (; i < a.n; i += 16) {
    const int64_t n = at_most(a.n - i, 16);
    m0 = max(keep_lanes(load_first(a.x + i, n), 0, n, none), m0);
  }
  *a.value = max_lane(max(max(m0, m1), max(m2, m3)));
  *a.index = 0;
  for (i = 0; i < a.n; i += 16) {
    const int64_t n = at_most(a.n - i, 16);
    const int64_t lane = first_equal(load_first(a.x + i, n), splat(*a.value));
    if (lane < n) {
      *a.index = i + lane;
      return;
    }
  }
}

// sum of e^(x - max): 16 lanes in f32 over blocks of 256 values, the blocks in f64
void sum_exp(const SumExpArgs& a) {
  double total = 0;
  for (int64_t block = 0; block < a.n; block += 256) {
    const int64_t end = at_most(block + 256, a.n);
    F32 lanes = splat(0);
    for (int64_t i = block; i < end; i += 16) {
      const int64_t n = at_most(end - i, 16);
      const F32 e = exp(load_first(a.x + i, n) - splat(a.max));
      lanes = lanes + keep_lanes(e, 0, n, splat(0));
    }
    total += static_cast<double>(sum(lanes));
  }
  *a.sum = total;
}
