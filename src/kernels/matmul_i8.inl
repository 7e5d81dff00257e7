// y[r][row] = sum over blocks b, in ascending order and by fma, of
//   x_scale[r][b] * (scale[row][b] * sum (code - zero) q  +  min[row][b] * sum q)
// Sums of integers are exact, so an output depends on its own row and x alone: not on n, on panels
// or on the ISA. With two scales in a block, the bracket is the sum for both.

inline I8Rows from_row(I8Rows x, int64_t row) {
  x.q += row * x.q_stride;
  x.scale += row * x.scale_stride;
  x.sum += row * x.sum_stride;
  return x;
}

/// acc[i] += the term of one block for row i of x.
template <class Type, int n_rows>
inline void add_block(const U8 (&w)[8], const F32* scale, const F32* min, const I8Rows& x,
                      int64_t block, F32 (&acc)[n_rows]) {
  using Scales = typename Type::Scales;
  constexpr bool kWide = Type::Codes::kWide;
  constexpr int kZero = Type::kZero - (kWide ? kWideZero : 0);
  constexpr int kParts = kQuantBlock / Scales::kBlock, kGroups = 8 / kParts;
  F32 term[n_rows] = {};
  for (int part = 0; part < kParts; ++part) {
    I32 dots[n_rows];
    for (int i = 0; i < n_rows; ++i) {
      const int32_t* s = x.sum + i * x.sum_stride + block * 2 + part;
      const int32_t q_sum = kParts == 1 ? s[0] + s[1] : s[0];
      dots[i] = splat_i32(-kZero * q_sum);
      if constexpr (Scales::kMin) {
        const F32 sum = to_f32(splat_i32(q_sum));
        term[i] = part == 0 ? min[0] * sum : fma(min[part], sum, term[i]);
      }
    }
    for (int g = part * kGroups; g < (part + 1) * kGroups; ++g) {
      for (int i = 0; i < n_rows; ++i) {
        const int8_t* four = x.q + i * x.q_stride + block * kQuantBlock + 4 * g;
        dots[i] = kWide ? dot_wide(dots[i], w[g], four) : dot(dots[i], w[g], four);
      }
    }
    for (int i = 0; i < n_rows; ++i) {
      const F32 sum = to_f32(dots[i]);
      term[i] = !Scales::kMin && part == 0 ? scale[0] * sum : fma(scale[part], sum, term[i]);
    }
  }
  for (int i = 0; i < n_rows; ++i) {
    acc[i] = fma(splat(x.scale[i * x.scale_stride + block]), term[i], acc[i]);
  }
}

template <class Type, int n_rows>
inline void add_block_in_memory(const U8 (&w)[8], const F32* scale, const F32* min, const I8Rows& x,
                                int64_t block, float* acc) {
  F32 a[n_rows];
  for (int i = 0; i < n_rows; ++i) a[i] = load(acc + 16 * i);
  add_block<Type, n_rows>(w, scale, min, x, block, a);
  for (int i = 0; i < n_rows; ++i) store(acc + 16 * i, a[i]);
}

/// Few rows: their sums stay in registers, n_rows at a time.
template <class Type, int n_rows>
void panel_i8_few(const uint8_t* panel, int64_t k, I8Rows x, int64_t rows, float* y,
                  int64_t y_stride) {
  if (rows >= n_rows) {
    F32 acc[n_rows];
    for (F32& sum : acc) sum = splat(0);
    for_blocks<Type>(panel, k,
                     [&](const uint8_t* codes, const F32* scale, const F32* min, int64_t block) {
                       U8 w[8];
                       Type::Codes::unpack(codes, w);
                       add_block<Type, n_rows>(w, scale, min, x, block, acc);
                     });
    for (int i = 0; i < n_rows; ++i) store(y + i * y_stride, acc[i]);
    rows -= n_rows;
    x = from_row(x, n_rows);
    y += n_rows * y_stride;
  }
  if constexpr (n_rows > 1) {
    if (rows > 0) panel_i8_few<Type, n_rows / 2>(panel, k, x, rows, y, y_stride);
  }
}

/// rows <= kTileRows. The sums stay in memory, so that a block is unpacked once for all rows.
template <class Type>
void panel_i8(const uint8_t* panel, int64_t k, I8Rows x, int64_t rows, float* y, int64_t y_stride) {
  alignas(64) float acc[kTileRows * 16];
  for (int64_t i = 0; i < rows; ++i) store(acc + 16 * i, splat(0));
  for_blocks<Type>(panel, k,
                   [&](const uint8_t* codes, const F32* scale, const F32* min, int64_t block) {
                     U8 w[8];
                     Type::Codes::unpack(codes, w);
                     int64_t i = 0;
                     I8Rows rest = x;
                     for (; i + kRowsI8 <= rows; i += kRowsI8, rest = from_row(rest, kRowsI8)) {
                       add_block_in_memory<Type, kRowsI8>(w, scale, min, rest, block, acc + 16 * i);
                     }
                     for (; i < rows; ++i, rest = from_row(rest, 1)) {
                       add_block_in_memory<Type, 1>(w, scale, min, rest, block, acc + 16 * i);
                     }
                   });
  for (int64_t i = 0; i < rows; ++i) store(y + i * y_stride, load(acc + 16 * i));
}

template <class Type>
void matmul_i8(const MatmulI8Args& a) {
  for (int64_t row = 0; row < a.n; row += kTileRows) {
    const int64_t rows = a.n - row < kTileRows ? a.n - row : kTileRows;
    for (int64_t p = 0; p < a.n_panels; ++p) {
      const uint8_t* panel = static_cast<const uint8_t*>(a.panels) + p * a.panel_bytes;
      float* y = a.y + row * a.y_stride + p * kPanelRows;
      if (rows <= kRowsI8) {
        panel_i8_few<Type, kRowsI8>(panel, a.k, from_row(a.x, row), rows, y, a.y_stride);
      } else {
        panel_i8<Type>(panel, a.k, from_row(a.x, row), rows, y, a.y_stride);
      }
    }
  }
}
