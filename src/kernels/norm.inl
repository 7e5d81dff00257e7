// y = x / sqrt(mean(x^2) + eps) * weight
void rms_norm(const RmsNormArgs& a) {
  for (int64_t r = 0; r < a.n; ++r) {
    const float* x = a.x + r * a.x_stride;
    float* y = a.y + r * a.y_stride;
    F32 squares = splat(0);
    for (int64_t i = 0; i < a.dim; i += 16) {
      const F32 v = load_first(x + i, a.dim - i < 16 ? a.dim - i : 16);
      squares = fma(v, v, squares);
    }
    const float mean = sum(squares) / static_cast<float>(a.dim);
    const F32 scale = splat(1.0f / __builtin_sqrtf(mean + a.eps));
    for (int64_t i = 0; i < a.dim; i += 16) {
      const int64_t n = a.dim - i < 16 ? a.dim - i : 16;
      const F32 v = load_first(x + i, n) * scale;
      store_first(y + i, a.weight ? v * load_first(a.weight + i, n) : v, n);
    }
  }
}
