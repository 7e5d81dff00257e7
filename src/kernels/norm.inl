// Sum of squares in four chains, added as (0 + 1) + (2 + 3); missing lanes are zero.
inline float sum_squares(const float* x, int64_t dim) {
  F32 s0 = splat(0), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 64 <= dim; i += 64) {
    const F32 a = load(x + i), b = load(x + i + 16), c = load(x + i + 32), d = load(x + i + 48);
    s0 = fma(a, a, s0);
    s1 = fma(b, b, s1);
    s2 = fma(c, c, s2);
    s3 = fma(d, d, s3);
  }
  for (; i < dim; i += 16) {
    const F32 a = load_first(x + i, at_most(dim - i, 16));
    s0 = fma(a, a, s0);
  }
  return sum((s0 + s1) + (s2 + s3));
}

// y = x / sqrt(squares / dim + eps) * weight
inline void normalise(const float* x, const float* weight, float* y, int64_t dim, float squares,
                      float eps) {
  const float mean = squares / static_cast<float>(dim);
  const F32 scale = splat(1.0f / __builtin_sqrtf(mean + eps));
  int64_t i = 0;
  for (; i + 16 <= dim; i += 16) {
    const F32 v = load(x + i) * scale;
    store(y + i, weight ? v * load(weight + i) : v);
  }
  if (i < dim) {
    const F32 v = load_first(x + i, dim - i) * scale;
    store_first(y + i, weight ? v * load_first(weight + i, dim - i) : v, dim - i);
  }
}

// y = x / sqrt(mean(x^2) + eps) * weight
void rms_norm(const RmsNormArgs& a) {
  for (int64_t r = 0; r < a.n; ++r) {
    const float* x = a.x + r * a.x_stride;
    normalise(x, a.weight, a.y + r * a.y_stride, a.dim, sum_squares(x, a.dim), a.eps);
  }
}

// g = x * silu(gate); y = g / sqrt(mean(g^2) + eps) * weight, per group
void rms_norm_groups(const GroupNormArgs& a) {
  for (int64_t r = 0; r < a.n; ++r) {
    for (int64_t g = 0; g < a.n_groups; ++g) {
      const float* x = a.x + r * a.x_stride + g * a.dim;
      const float* weight = a.weight + g * a.weight_step;
      float* y = a.y + r * a.y_stride + g * a.dim;
      if (a.gate) {
        const float* gate = a.gate + r * a.gate_stride + g * a.dim;
        for (int64_t i = 0; i < a.dim; i += 16) {
          const int64_t n = at_most(a.dim - i, 16);
          store_first(y + i, load_first(x + i, n) * silu(load_first(gate + i, n)), n);
        }
        x = y;
      }
      normalise(x, weight, y, a.dim, sum_squares(x, a.dim), a.eps);
    }
  }
}
