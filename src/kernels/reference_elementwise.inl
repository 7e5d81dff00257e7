// silu(x) = x / (1 + e^-x)
double silu(double x) { return x / (1 + std::exp(-x)); }

// g = x * silu(gate); y = g / sqrt(mean(g^2) + eps) * weight, per group
void rms_norm_groups(const GroupNormArgs& a) {
  std::vector<double> g(static_cast<size_t>(a.dim));
  for (int64_t r = 0; r < a.n; ++r) {
    for (int64_t group = 0; group < a.n_groups; ++group) {
      double squares = 0;
      for (int64_t i = 0; i < a.dim; ++i) {
        const int64_t at = group * a.dim + i;
        double& value = g[size_t(i)];
        value = a.x[r * a.x_stride + at];
        if (a.gate) value *= silu(a.gate[r * a.gate_stride + at]);
        squares += value * value;
      }
      const double scale = 1 / std::sqrt(squares / double(a.dim) + a.eps);
      for (int64_t i = 0; i < a.dim; ++i) {
        a.y[r * a.y_stride + group * a.dim + i] =
            float(g[size_t(i)] * scale * a.weight[group * a.weight_step + i]);
      }
    }
  }
}

// x1' = x1 cos - x2 sin, x2' = x2 cos + x1 sin, for x2 half the rotated dims after x1
void rope(const RopeArgs& a) {
  const int64_t half = a.rotary_dim / 2;
  for (int64_t r = 0; r < a.n; ++r) {
    for (int64_t h = 0; h < a.n_heads; ++h) {
      float* x = a.x + r * a.x_stride + h * a.head_dim;
      for (int64_t i = 0; i < half; ++i) {
        const double c = a.cos[r * a.table_stride + i], s = a.sin[r * a.table_stride + i];
        const double x1 = x[i], x2 = x[half + i];
        x[i] = float(x1 * c - x2 * s);
        x[half + i] = float(x2 * c + x1 * s);
      }
    }
  }
}

// y = scale x + y
void add_scaled(const AddScaledArgs& a) {
  for (int64_t r = 0; r < a.n; ++r) {
    for (int64_t i = 0; i < a.dim; ++i) {
      float& y = a.y[r * a.y_stride + i];
      y = float(double(a.scale) * a.x[r * a.x_stride + i] + y);
    }
  }
}

// y = y + bias
void add_bias(const AddBiasArgs& a) {
  for (int64_t r = 0; r < a.n; ++r) {
    for (int64_t i = 0; i < a.dim; ++i) a.y[r * a.y_stride + i] += a.bias[i];
  }
}

// y = gate / (1 + e^-gate) * up
void silu_mul(const SiluMulArgs& a) {
  for (int64_t r = 0; r < a.n; ++r) {
    for (int64_t i = 0; i < a.dim; ++i) {
      const double gate = a.gate[r * a.gate_stride + i], up = a.up[r * a.up_stride + i];
      a.y[r * a.y_stride + i] = float(silu(gate) * up);
    }
  }
}

// y = scale x
void scale(const ScaleArgs& a) {
  for (int64_t r = 0; r < a.n; ++r) {
    for (int64_t i = 0; i < a.dim; ++i) {
      a.y[r * a.y_stride + i] = a.scale * a.x[r * a.x_stride + i];
    }
  }
}

// e^x, zero below the normal floats
double exp_or_zero(double x) {
  const double e = std::exp(x);
  return e < double(std::numeric_limits<float>::min()) ? 0 : e;
}

// y = e^x
void exp(const ExpArgs& a) {
  for (int64_t i = 0; i < a.n; ++i) a.y[i] = float(exp_or_zero(a.x[i]));
}

// The lowest index of the largest value
void argmax(const ArgmaxArgs& a) {
  *a.value = -std::numeric_limits<float>::infinity();
  *a.index = 0;
  bool found = false;
  for (int64_t i = 0; i < a.n; ++i) {
    if (a.x[i] > *a.value || (!found && a.x[i] == *a.value)) {
      *a.value = a.x[i];
      *a.index = i;
      found = true;
    }
  }
}

// sum of e^(x - max)
void sum_exp(const SumExpArgs& a) {
  *a.sum = 0;
  for (int64_t i = 0; i < a.n; ++i) *a.sum += exp_or_zero(a.x[i] - a.max);
}
