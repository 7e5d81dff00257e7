// y[r][row] = sum of w[row][k] x[r][k], as a sum of partial sums over 16 columns: products are
// added by fma in ascending order within one, and partial sums in ascending order. w is the exact
// weight.

/// acc[i] += sum over c of w[c] * x[i][c].
template <int n_rows>
inline void add_columns(const F32 (&w)[16], int64_t columns, const float* x, int64_t x_stride,
                        F32 (&acc)[n_rows]) {
  F32 part[n_rows];
  for (int i = 0; i < n_rows; ++i) part[i] = splat(0);
  if (columns == 16) {
    for (int c = 0; c < 16; ++c) {
      for (int i = 0; i < n_rows; ++i) part[i] = fma(w[c], splat(x[i * x_stride + c]), part[i]);
    }
  } else {
    for (int64_t c = 0; c < columns; ++c) {
      for (int i = 0; i < n_rows; ++i) part[i] = fma(w[c], splat(x[i * x_stride + c]), part[i]);
    }
  }
  for (int i = 0; i < n_rows; ++i) acc[i] = acc[i] + part[i];
}

template <int n_rows>
inline void add_columns_in_memory(const F32 (&w)[16], int64_t columns, const float* x,
                                  int64_t x_stride, float* acc) {
  F32 a[n_rows];
  for (int i = 0; i < n_rows; ++i) a[i] = load(acc + 16 * i);
  add_columns<n_rows>(w, columns, x, x_stride, a);
  for (int i = 0; i < n_rows; ++i) store(acc + 16 * i, a[i]);
}

/// Shared by all types: the weights of 16 columns and all rows of a tile.
[[gnu::noinline]] void add_columns_of_rows(const F32 (&w)[16], int64_t columns, const float* x,
                                           int64_t x_stride, int64_t rows, float* acc) {
  int64_t i = 0;
  for (; i + kRowsF32 <= rows; i += kRowsF32) {
    add_columns_in_memory<kRowsF32>(w, columns, x + i * x_stride, x_stride, acc + 16 * i);
  }
  for (; i + kRowsF32 / 2 <= rows; i += kRowsF32 / 2) {
    add_columns_in_memory<kRowsF32 / 2>(w, columns, x + i * x_stride, x_stride, acc + 16 * i);
  }
  for (; i < rows; ++i) {
    add_columns_in_memory<1>(w, columns, x + i * x_stride, x_stride, acc + 16 * i);
  }
}

/// code - zero of each nibble.
template <class Type>
struct NibbleValues {
  float value[16];
  constexpr NibbleValues() : value() {
    for (int i = 0; i < 16; ++i) value[i] = float(Type::Codes::kNibbles[i] - Type::kZero);
  }
};

/// code - zero of the columns of one half of a block.
template <class Type, int half>
inline void decode_codes(const uint8_t* codes, F32 (&out)[16]) {
  if constexpr (kHasNibbleLookup && requires { Type::Codes::kNibbles; }) {
    static constexpr NibbleValues<Type> kTable;
    for (int j = 0; j < 4; ++j) {
      const U8 v = load_u8(codes + 64 * j);
      out[4 * j] = lookup_nibble<half>(v, kTable.value);
      out[4 * j + 1] = lookup_nibble<2 + half>(v, kTable.value);
      out[4 * j + 2] = lookup_nibble<4 + half>(v, kTable.value);
      out[4 * j + 3] = lookup_nibble<6 + half>(v, kTable.value);
    }
  } else {
    const F32 bias = splat(8388608.0f + Type::kZero);
    U8 w[8];
    Type::Codes::unpack(codes, w);
    for (int j = 0; j < 4; ++j) {
      const U8 v = w[4 * half + j];
      out[4 * j] = byte_to_f32<0>(v, bias);
      out[4 * j + 1] = byte_to_f32<1>(v, bias);
      out[4 * j + 2] = byte_to_f32<2>(v, bias);
      out[4 * j + 3] = byte_to_f32<3>(v, bias);
    }
  }
}

/// The weights of the columns of one half of a block.
template <class Type, int half>
inline void decode_columns(const uint8_t* codes, const F32* scale, const F32* min, F32 (&out)[16]) {
  constexpr int kPart = Type::Scales::kBlock == 16 ? half : 0;
  decode_codes<Type, half>(codes, out);
  for (int c = 0; c < 16; ++c) {
    out[c] = Type::Scales::kMin ? fma(scale[kPart], out[c], min[kPart]) : scale[kPart] * out[c];
  }
}

/// A quantised type as weights of 16 columns at a time.
template <class Type>
struct DecodeQuant {
  /// Calls body(w, columns, first column).
  template <class Body>
  static void for_columns(const uint8_t* panel, int64_t k, const Body& body) {
    for_blocks<Type>(panel, k,
                     [&](const uint8_t* codes, const F32* scale, const F32* min, int64_t block) {
                       F32 w[16];
                       decode_columns<Type, 0>(codes, scale, min, w);
                       body(w, int64_t{16}, block * kQuantBlock);
                       decode_columns<Type, 1>(codes, scale, min, w);
                       body(w, int64_t{16}, block * kQuantBlock + 16);
                     });
  }
};

template <class Values>
struct DecodePlain {
  template <class Body>
  static void for_columns(const uint8_t* panel, int64_t k, const Body& body) {
    for (int64_t column = 0; column < k; column += 16) {
      const uint8_t* p = panel + column * Values::kBytes;
      const int64_t columns = k - column < 16 ? k - column : 16;
      F32 w[16];
      if (columns == 16) {
        for (int i = 0; i < 16 * Values::kBytes; i += 64) __builtin_prefetch(p + i + kAhead);
        for (int c = 0; c < 16; ++c) w[c] = Values::get(p + c * Values::kBytes);
      } else {
        for (int64_t c = 0; c < columns; ++c) w[c] = Values::get(p + c * Values::kBytes);
      }
      body(w, columns, column);
    }
  }
};

template <class Decode>
void matmul_f32(const MatmulF32Args& a) {
  for (int64_t row = 0; row < a.n; row += kTileRows) {
    const int64_t rows = a.n - row < kTileRows ? a.n - row : kTileRows;
    const float* x = a.x + row * a.x_stride;
    for (int64_t p = 0; p < a.n_panels; ++p) {
      const uint8_t* panel = static_cast<const uint8_t*>(a.panels) + p * a.panel_bytes;
      float* y = a.y + row * a.y_stride + p * kPanelRows;
      if (rows == 1) {
        F32 acc[1] = {splat(0)};
        Decode::for_columns(panel, a.k, [&](const F32(&w)[16], int64_t columns, int64_t first) {
          add_columns<1>(w, columns, x + first, a.x_stride, acc);
        });
        store(y, acc[0]);
        continue;
      }
      alignas(64) float acc[kTileRows * 16];
      for (int64_t i = 0; i < rows; ++i) store(acc + 16 * i, splat(0));
      Decode::for_columns(panel, a.k, [&](const F32(&w)[16], int64_t columns, int64_t first) {
        add_columns_of_rows(w, columns, x + first, a.x_stride, rows, acc);
      });
      for (int64_t i = 0; i < rows; ++i) store(y + i * a.y_stride, load(acc + 16 * i));
    }
  }
}
