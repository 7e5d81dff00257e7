// To f16, nearest even, kept within the largest finite value.
uint16_t to_f16(float x) {
  if (std::isnan(x)) return 0x7e00;
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  const double a = std::min(std::fabs(double(x)), 65504.0);
  int exponent = 0;
  std::frexp(a, &exponent);
  // Multiples of 2^step are representable: 10 bits below the leading one, 2^-24 at least.
  const int step = std::max(exponent - 11, -24);
  const double multiple = std::nearbyint(std::ldexp(a, -step));
  if (multiple < 1024) return uint16_t(sign | int(multiple));  // subnormal
  return uint16_t(sign | (((step + 24) << 10) + int(multiple)));
}

float to_f32(uint16_t h) {
  const float sign = h & 0x8000 ? -1.0f : 1.0f;
  const uint32_t magnitude = h & 0x7fff;
  if (magnitude > 0x7c00) return std::nanf("");
  if (magnitude == 0x7c00) return sign * INFINITY;
  // The bits of an f16 in the place of an f32's, whose exponent bias is 112 larger.
  return sign * std::bit_cast<float>(magnitude << 13) * 0x1p112f;
}

void write_element(float x, float& to) { to = x; }
void write_element(float x, uint16_t& to) { to = to_f16(x); }
float read_element(float x) { return x; }
float read_element(uint16_t x) { return to_f32(x); }

// Where one value of a key or of a value vector lies in the cache.
template <typename E>
E& key_at(const KvPages& p, int64_t position, int64_t head, int64_t d) {
  const int64_t page = p.page_of[position / kPagePositions], slot = position % kPagePositions;
  E* k = reinterpret_cast<E*>(static_cast<char*>(p.k) + page * p.k_page_bytes);
  return k[((head * 2 + slot / 16) * p.head_dim + d) * 16 + slot % 16];
}
template <typename E>
E& value_at(const KvPages& p, int64_t position, int64_t head, int64_t d) {
  const int64_t page = p.page_of[position / kPagePositions], slot = position % kPagePositions;
  E* v = reinterpret_cast<E*>(static_cast<char*>(p.v) + page * p.v_page_bytes);
  return v[(head * kPagePositions + slot) * ((p.v_head_dim + 15) / 16 * 16) + d];
}

template <typename E>
void kv_store(const KvStoreArgs& a) {
  const KvPages& p = a.pages;
  for (int64_t r = 0; r < a.n; ++r) {
    for (int64_t h = 0; h < p.n_kv_heads; ++h) {
      for (int64_t d = 0; d < p.head_dim; ++d) {
        write_element(a.k[r * a.k_stride + h * p.head_dim + d], key_at<E>(p, a.position + r, h, d));
      }
      for (int64_t d = 0; d < (p.v_head_dim + 15) / 16 * 16; ++d) {
        write_element(d < p.v_head_dim ? a.v[r * a.v_stride + h * p.v_head_dim + d] : 0.0f,
                      value_at<E>(p, a.position + r, h, d));
      }
    }
  }
}
void kv_store_f32(const KvStoreArgs& a) { kv_store<float>(a); }
void kv_store_f16(const KvStoreArgs& a) { kv_store<uint16_t>(a); }

int64_t first_position(const AttendArgs& a, int64_t position) {
  return a.window > 0 ? std::max<int64_t>(position - a.window + 1, 0) : 0;
}

float* partial_of(const AttendArgs& a, int64_t row, int64_t head, int64_t span) {
  const int64_t slot = span - first_position(a, a.position) / kSpanPositions;
  return a.partial + ((row * a.n_heads + head) * a.n_spans + slot) * a.partial_stride;
}

// part = max, sum and, from 16 on, the weighted values of one query over one span
template <typename E>
void attend_span(const AttendArgs& a, int64_t row, int64_t head, int64_t span, float* part) {
  const KvPages& p = a.pages;
  const int64_t kv_head = head / (a.n_heads / p.n_kv_heads), position = a.position + row;
  const int64_t first = std::max(span * kSpanPositions, first_position(a, position));
  const int64_t last = std::min((span + 1) * kSpanPositions, position + 1);
  const float* q = a.q + row * a.q_stride + head * p.head_dim;
  std::vector<double> weight(size_t(last - first));
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t j = first; j < last; ++j) {
    double score = 0;
    for (int64_t d = 0; d < p.head_dim; ++d) {
      score += double(q[d]) * read_element(key_at<E>(p, j, kv_head, d));
    }
    weight[size_t(j - first)] = score * a.scale;
    max = std::max(max, score * a.scale);
  }
  part[0] = float(max);
  for (double& w : weight) sum += w = std::exp(w - part[0]);
  part[1] = float(sum);
  for (int64_t d = 0; d < p.v_head_dim; ++d) {
    double value = 0;
    for (int64_t j = first; j < last; ++j) {
      value += weight[size_t(j - first)] * read_element(value_at<E>(p, j, kv_head, d));
    }
    part[16 + d] = float(value);
  }
}

// y = sum of e^(max_s - max) values_s / sum of e^(max_s - max) sum_s; part(s): span s's result
template <typename Part>
void merge_spans(const AttendArgs& a, int64_t row, int64_t head, Part part) {
  const int64_t v_dim = a.pages.v_head_dim, position = a.position + row;
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  std::vector<double> values(static_cast<size_t>(v_dim));
  for (int64_t s = first_position(a, position) / kSpanPositions; s <= position / kSpanPositions;
       ++s) {
    const float* span = part(s);
    const double new_max = std::max(max, double(span[0]));
    const double keep = std::exp(max - new_max), add = std::exp(span[0] - new_max);
    max = new_max;
    sum = sum * keep + span[1] * add;
    for (int64_t d = 0; d < v_dim; ++d) {
      values[size_t(d)] = values[size_t(d)] * keep + span[16 + d] * add;
    }
  }
  float* y = a.y + row * a.y_stride + head * v_dim;
  for (int64_t d = 0; d < v_dim; ++d) y[d] = float(values[size_t(d)] / sum);
}

// y = softmax(scale q K^T) V
template <typename E>
void attend(const AttendArgs& a) {
  const int64_t group = a.n_heads / a.pages.n_kv_heads;
  std::vector<float> scratch(size_t(16 + a.pages.v_head_dim));
  for (int64_t row = a.first_row; row < a.last_row; ++row) {
    for (int64_t head = a.first_head * group; head < a.last_head * group; ++head) {
      if (!a.partial) {
        merge_spans(a, row, head, [&](int64_t span) {
          attend_span<E>(a, row, head, span, scratch.data());
          return scratch.data();
        });
        continue;
      }
      const int64_t position = a.position + row;
      const int64_t visible = first_position(a, position) / kSpanPositions;
      for (int64_t span = std::max(a.first_span, visible);
           span < std::min(a.last_span, position / kSpanPositions + 1); ++span) {
        attend_span<E>(a, row, head, span, partial_of(a, row, head, span));
      }
    }
  }
}
void attend_f32(const AttendArgs& a) { attend<float>(a); }
void attend_f16(const AttendArgs& a) { attend<uint16_t>(a); }

void attend_merge(const AttendArgs& a) {
  const int64_t group = a.n_heads / a.pages.n_kv_heads;
  for (int64_t row = a.first_row; row < a.last_row; ++row) {
    for (int64_t head = a.first_head * group; head < a.last_head * group; ++head) {
      merge_spans(a, row, head, [&](int64_t span) { return partial_of(a, row, head, span); });
    }
  }
}
