// Attention over the paged cache. Queries of the same kv head are computed in tiles, so that a
// vector of keys or values is loaded once per tile. Each output element is its own chain of fused
// multiply-adds, in the same order whatever the tile.

// Floats from one query of a tile to the next; not powers of two, whose cache sets would collide.
inline constexpr int kQueryStep = kMaxHeadDim + 16;
inline constexpr int kScoreStep = kSpanPositions + 16;
inline constexpr int kSpanPages = kSpanPositions / kPagePositions;
inline constexpr int kMaxTile = kF32Registers == 32 ? 12 : 6;

inline void store_element(float* to, F32 a) { store(to, a); }
inline void store_element(uint16_t* to, F32 a) {
  const F32 largest = splat(65504);
  store(to, max(splat(-65504), min(largest, a)));
}

// k[head][group][d][lane] = k_row[d], v[head][slot][d] = v_row[d]
template <typename E>
void kv_store(const KvStoreArgs& a) {
  const KvPages& pages = a.pages;
  const int64_t k_dim = pages.head_dim, v_dim = pages.v_head_dim, v_padded = round_up16(v_dim);
  for (int64_t r = 0; r < a.n; ++r) {
    const int64_t position = a.position + r, slot = position % kPagePositions;
    const int64_t page = pages.page_of[position / kPagePositions];
    E* k_page = reinterpret_cast<E*>(static_cast<char*>(pages.k) + page * pages.k_page_bytes);
    E* v_page = reinterpret_cast<E*>(static_cast<char*>(pages.v) + page * pages.v_page_bytes);
    for (int64_t h = 0; h < pages.n_kv_heads; ++h) {
      const float* k_row = a.k + r * a.k_stride + h * k_dim;
      E* k = k_page + (h * 2 + slot / 16) * k_dim * 16 + slot % 16;
      for (int64_t d = 0; d < k_dim; d += 16) {
        const int64_t n = at_most(k_dim - d, 16);
        E element[16];
        store_element(element, load_first(k_row + d, n));
        for (int64_t i = 0; i < n; ++i) k[(d + i) * 16] = element[i];
      }
      const float* v_row = a.v + r * a.v_stride + h * v_dim;
      E* v = v_page + (h * kPagePositions + slot) * v_padded;
      for (int64_t d = 0; d < v_dim; d += 16) {
        store_element(v + d, load_first(v_row + d, at_most(v_dim - d, 16)));
      }
    }
  }
}
void kv_store_f32(const KvStoreArgs& a) { kv_store<float>(a); }
void kv_store_f16(const KvStoreArgs& a) { kv_store<uint16_t>(a); }

// sum[q][c] += sum over i in [0, n) of a[q * kStep + i] * b[c][i * b_step], i ascending. With few
// queries memory is the limit: `ahead[c]`
// is read soon and laid out like b[c].
template <int Q, int C, int kStep, typename E>
inline void multiply_add(const float* a, const E* const* b, const E* const* ahead, int64_t b_step,
                         int64_t n, F32 (&sum)[Q][C]) {
  for (int64_t i = 0; i < n; ++i) {
    F32 column[C];
    if constexpr (Q <= 6) {
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) __builtin_prefetch(ahead[c] + i * b_step, 0, 2);
    }
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) column[c] = load(b[c] + i * b_step);
#pragma GCC unroll 12
    for (int q = 0; q < Q; ++q) {
      const F32 factor = splat(a[q * kStep + i]);
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sum[q][c] = fma(factor, column[c], sum[q][c]);
    }
  }
}

// The spans that a query at `position` sees.
inline int64_t first_visible_span(int64_t position, int64_t window) {
  return window > 0 ? at_least(position - window + 1, 0) / kSpanPositions : 0;
}
inline int64_t last_visible_span(int64_t position) { return position / kSpanPositions; }

// Softmax numerator of one query over spans: y = values / sum, weights relative to e^max.
struct Weighted {
  float max, sum;
  float* values;  // (v_head_dim rounded up to 16)
};

// total += part, both relative to the larger maximum.
inline void merge(Weighted& total, const Weighted& part, int64_t v_padded) {
  const float max = part.max > total.max ? part.max : total.max;
  const F32 keep = exp(splat(total.max - max)), add = exp(splat(part.max - max));
  total.max = max;
  total.sum = lane0(fma(splat(total.sum), keep, splat(part.sum) * add));
  for (int64_t d = 0; d < v_padded; d += 16) {
    const F32 part_values = load(part.values + d) * add;
    store(total.values + d, fma(load(total.values + d), keep, part_values));
  }
}

inline void write_row(const AttendArgs& a, int64_t row, int64_t head, const Weighted& total) {
  const int64_t v_dim = a.pages.v_head_dim;
  float* y = a.y + row * a.y_stride + head * v_dim;
  for (int64_t d = 0; d < v_dim; d += 16) {
    store_first(y + d, load(total.values + d) / splat(total.sum), at_most(v_dim - d, 16));
  }
}

inline float* partial_of(const AttendArgs& a, int64_t row, int64_t head, int64_t span) {
  const int64_t slot = span - first_visible_span(a.position, a.window);
  return a.partial + ((row * a.n_heads + head) * a.n_spans + slot) * a.partial_stride;
}

// Q queries of one kv head. Those from n on repeat the last one and are not written.
template <int Q, typename E>
struct Tile {
  // Vectors per step, so that sums, columns and one factor fit in the registers.
  static constexpr int kColumns = kF32Registers == 32 ? (Q <= 6 ? 4 : 2) : (Q <= 2 ? 2 : 1);

  const AttendArgs& a;
  int64_t kv_head, n;
  int64_t row[Q], head[Q];
  int64_t first[Q], last[Q];  // positions of the span that the query sees, from the span's start
  // Pages of the span, at this kv head; of keys, also those of the span to come.
  const E *k_page[kSpanPages], *v_page[kSpanPages], *next_k_page[kSpanPages];
  float largest[Q], total[Q];  // over the span: the maximum, and the sum of e^(score - maximum)
  alignas(64) float query[Q * kQueryStep];
  alignas(64) float score[Q * kScoreStep];
  alignas(64) float values[Q * kMaxHeadDim];

  Tile(const AttendArgs& args, int64_t head_index, int64_t first_query, int64_t n_queries)
      : a(args), kv_head(head_index), n(n_queries) {
    const int64_t group = a.n_heads / a.pages.n_kv_heads;
    for (int64_t q = 0; q < Q; ++q) {
      const int64_t index = first_query + at_most(q, n - 1);
      row[q] = index / group;
      head[q] = kv_head * group + index % group;
      const float* from = a.q + row[q] * a.q_stride + head[q] * a.pages.head_dim;
      for (int64_t d = 0; d < a.pages.head_dim; ++d) query[q * kQueryStep + d] = a.scale * from[d];
    }
  }

  void find_pages(int64_t span, int64_t last_span) {
    const int64_t k_head = kv_head * kPagePositions * a.pages.head_dim;
    const int64_t v_head = kv_head * kPagePositions * round_up16(a.pages.v_head_dim);
    const int64_t last_page = (a.position + row[Q - 1]) / kPagePositions;
    const int64_t next = span < last_span ? kSpanPages : 0;
    for (int64_t p = first[0] / kPagePositions; p * kPagePositions < last[Q - 1]; ++p) {
      const int64_t index = span * kSpanPages + p;
      k_page[p] = at_page(a.pages.k, a.pages.k_page_bytes, index) + k_head;
      v_page[p] = at_page(a.pages.v, a.pages.v_page_bytes, index) + v_head;
      next_k_page[p] =
          at_page(a.pages.k, a.pages.k_page_bytes, at_most(index + next, last_page)) + k_head;
    }
  }
  const E* at_page(const void* pool, int64_t page_bytes, int64_t index) const {
    return reinterpret_cast<const E*>(static_cast<const char*>(pool) +
                                      a.pages.page_of[index] * page_bytes);
  }

  // score[q][j] = scale q . k_j for positions [from, to) of the span and what fills their vectors
  void compute_scores(int64_t from, int64_t to) {
    const int64_t dim = a.pages.head_dim, first_group = from / 16, last_group = (to - 1) / 16;
    for (int64_t g = first_group / kColumns * kColumns; g <= last_group; g += kColumns) {
      const E *keys[kColumns], *ahead[kColumns];
      for (int c = 0; c < kColumns; ++c) {
        const int64_t group = at_least(at_most(g + c, last_group), first_group);
        keys[c] = k_page[group / 2] + group % 2 * 16 * dim;
        ahead[c] = v_page[group / 2] + group % 2 * 16 * round_up16(a.pages.v_head_dim);
      }
      F32 sums[Q][kColumns];
      for (int q = 0; q < Q; ++q) {
        for (int c = 0; c < kColumns; ++c) sums[q][c] = splat(0);
      }
      multiply_add<Q, kColumns, kQueryStep>(query, keys, ahead, 16, dim, sums);
      for (int q = 0; q < Q; ++q) {
        for (int c = 0; c < kColumns; ++c) store(score + q * kScoreStep + (g + c) * 16, sums[q][c]);
      }
    }
  }

  // score[q][j] = e^(score - largest), zero where the query does not see j
  void softmax(int64_t q) {
    const F32 hidden = splat(-__builtin_inff());
    const int64_t begin = first[q] / 16 * 16;
    float* s = score + q * kScoreStep;
    F32 lanes = hidden;
    for (int64_t j = begin; j < last[q]; j += 16) {
      F32 v = load(s + j);
      if (j < first[q] || j + 16 > last[q]) {
        v = keep_lanes(v, first[q] - j, last[q] - j, hidden);
        store(s + j, v);
      }
      lanes = max(v, lanes);
    }
    largest[q] = max_lane(lanes);
    lanes = splat(0);
    for (int64_t j = begin; j < last[q]; j += 16) {
      const F32 p = exp(load(s + j) - splat(largest[q]));
      store(s + j, p);
      lanes = lanes + p;
    }
    total[q] = sum(lanes);
  }

  // Adds score * value for positions [from, to), which lie in every query's range, or are checked.
  template <bool kChecked>
  void add_values(int64_t from, int64_t to, int64_t column, F32 (&sums)[Q][kColumns]) const {
    const int64_t v_padded = round_up16(a.pages.v_head_dim), last_column = v_padded - 16;
    while (from < to) {
      const int64_t end = at_most(to, (from / kPagePositions + 1) * kPagePositions);
      const int64_t page = from / kPagePositions, slot = from % kPagePositions * v_padded;
      const E *v[kColumns], *ahead[kColumns];
      for (int c = 0; c < kColumns; ++c) {
        const int64_t at = slot + at_most(column + 16 * c, last_column);
        v[c] = v_page[page] + at;
        ahead[c] = next_k_page[page] + at;
      }
      if constexpr (kChecked) {
        for (int64_t j = from; j < end; ++j) {
          for (int q = 0; q < Q; ++q) {
            if (j < first[q] || j >= last[q]) continue;
            const F32 factor = splat(score[q * kScoreStep + j]);
            for (int c = 0; c < kColumns; ++c) {
              sums[q][c] = fma(factor, load(v[c] + (j - from) * v_padded), sums[q][c]);
            }
          }
        }
      } else {
        multiply_add<Q, kColumns, kScoreStep>(score + from, v, ahead, v_padded, end - from, sums);
      }
      from = end;
    }
  }

  // values[q] = sum over j of score[q][j] v_j. Queries stand in order of position, so the positions
  // that all see are [first of the last query, last of the first query).
  void compute_values() {
    const int64_t begin = first[0], end = last[Q - 1];
    const int64_t common_begin = at_most(first[Q - 1], end);
    const int64_t common_end = at_least(last[0], common_begin);
    for (int64_t d = 0; d < a.pages.v_head_dim; d += 16 * kColumns) {
      F32 sums[Q][kColumns];
      for (int q = 0; q < Q; ++q) {
        for (int c = 0; c < kColumns; ++c) sums[q][c] = splat(0);
      }
      add_values<true>(begin, common_begin, d, sums);
      add_values<false>(common_begin, common_end, d, sums);
      add_values<true>(common_end, end, d, sums);
      for (int q = 0; q < Q; ++q) {
        for (int c = 0; c < kColumns; ++c) store(values + q * kMaxHeadDim + d + 16 * c, sums[q][c]);
      }
    }
  }

  void compute_span(int64_t span, int64_t last_span) {
    for (int q = 0; q < Q; ++q) {
      const int64_t seen = a.position + row[q] + 1 - span * kSpanPositions;
      last[q] = at_least(at_most(seen, kSpanPositions), 0);
      first[q] = a.window > 0 ? at_least(at_most(seen - a.window, kSpanPositions), 0) : 0;
    }
    if (first[0] >= last[Q - 1]) return;
    find_pages(span, last_span);
    compute_scores(first[0], last[Q - 1]);
    for (int q = 0; q < Q; ++q) softmax(q);
    compute_values();
  }
};

template <int Q, typename E>
void attend_tile(const AttendArgs& a, int64_t kv_head, int64_t first_query, int64_t n) {
  Tile<Q, E> tile(a, kv_head, first_query, n);
  const int64_t v_padded = round_up16(a.pages.v_head_dim);
  alignas(64) float values[Q * kMaxHeadDim];
  Weighted totals[Q];
  for (int q = 0; q < Q; ++q) {
    totals[q] = {-__builtin_inff(), 0, values + q * kMaxHeadDim};
    for (int64_t d = 0; d < v_padded; d += 16) store(totals[q].values + d, splat(0));
  }
  int64_t begin = first_visible_span(a.position + tile.row[0], a.window);
  int64_t end = last_visible_span(a.position + tile.row[Q - 1]) + 1;
  if (a.partial) {
    begin = at_least(begin, a.first_span);
    end = at_most(end, a.last_span);
  }
  for (int64_t span = begin; span < end; ++span) {
    tile.compute_span(span, end - 1);
    for (int64_t q = 0; q < n; ++q) {
      if (tile.first[q] >= tile.last[q]) continue;
      const Weighted part = {tile.largest[q], tile.total[q], tile.values + q * kMaxHeadDim};
      if (!a.partial) {
        merge(totals[q], part, v_padded);
        continue;
      }
      float* to = partial_of(a, tile.row[q], tile.head[q], span);
      to[0] = part.max;
      to[1] = part.sum;
      for (int64_t d = 0; d < v_padded; d += 16) store(to + 16 + d, load(part.values + d));
    }
  }
  if (a.partial) return;
  for (int64_t q = 0; q < n; ++q) write_row(a, tile.row[q], tile.head[q], totals[q]);
}

// y = softmax(scale q K^T) V
template <typename E>
void attend(const AttendArgs& a) {
  const int64_t group = a.n_heads / a.pages.n_kv_heads;
  for (int64_t h = a.first_head; h < a.last_head; ++h) {
    for (int64_t i = a.first_row * group; i < a.last_row * group; i += kMaxTile) {
      const int64_t n = at_most(a.last_row * group - i, kMaxTile);
      const auto tile = n == 1   ? attend_tile<1, E>
                        : n == 2 ? attend_tile<2, E>
                        : n == 3 ? attend_tile<3, E>
                        : n == 4 ? attend_tile<4, E>
                        : n <= 6 ? attend_tile<6, E>
                        : n <= 8 ? attend_tile<at_most(8, kMaxTile), E>
                                 : attend_tile<kMaxTile, E>;
      tile(a, h, i, n);
    }
  }
}
void attend_f32(const AttendArgs& a) { attend<float>(a); }
void attend_f16(const AttendArgs& a) { attend<uint16_t>(a); }

// y = sum of e^(max_s - max) values_s / sum of e^(max_s - max) sum_s over the row's spans s, in
// order
void attend_merge(const AttendArgs& a) {
  const int64_t group = a.n_heads / a.pages.n_kv_heads;
  const int64_t v_padded = round_up16(a.pages.v_head_dim);
  alignas(64) float values[kMaxHeadDim];
  for (int64_t row = a.first_row; row < a.last_row; ++row) {
    const int64_t position = a.position + row;
    for (int64_t head = a.first_head * group; head < a.last_head * group; ++head) {
      Weighted total = {-__builtin_inff(), 0, values};
      for (int64_t d = 0; d < v_padded; d += 16) store(values + d, splat(0));
      for (int64_t span = first_visible_span(position, a.window);
           span <= last_visible_span(position); ++span) {
        float* part = partial_of(a, row, head, span);
        merge(total, {part[0], part[1], part + 16}, v_padded);
      }
      write_row(a, row, head, total);
    }
  }
}
