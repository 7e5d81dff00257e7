// How the vectors of a packed panel are read (packed_layout.h defines what they hold).

/// A vector of 16 rows per column.
struct ValuesF32 {
  static constexpr int kBytes = 64;
  static F32 get(const uint8_t* p) { return load(reinterpret_cast<const float*>(p)); }
};
struct ValuesF16 {
  static constexpr int kBytes = 32;
  static F32 get(const uint8_t* p) { return load_f16(p); }
};
struct ValuesBF16 {
  static constexpr int kBytes = 32;
  static F32 get(const uint8_t* p) { return load_bf16(p); }
};

// Codes: the 8 groups of a block of 32 columns as bytes. kWide: some are above 127. kNibbles: the
// code of each nibble, where all of the code is in one.

/// w[g] |= bit pair g << at.
template <int at>
inline void add_bit_pairs(const uint8_t* p, U8 (&w)[8]) {
  const U8 mask = splat_u8(3 << at);
  for (int h = 0; h < 2; ++h) {
    const U8 v = load_u8(p + 64 * h);
    w[4 * h] = w[4 * h] | (shift_left<at>(v) & mask);
    w[4 * h + 1] = w[4 * h + 1] | (shift_left<at - 2>(v) & mask);
    w[4 * h + 2] = w[4 * h + 2] | (shift_right<4 - at>(v) & mask);
    w[4 * h + 3] = w[4 * h + 3] | (shift_right<6 - at>(v) & mask);
  }
}
/// w[g] |= bit g << at; at is 2 or 4.
template <int at>
inline void add_bits(const uint8_t* p, U8 (&w)[8]) {
  const U8 v = load_u8(p), mask = splat_u8(1 << at);
  w[0] = w[0] | (shift_left<at>(v) & mask);
  w[1] = w[1] | (shift_left<at - 1>(v) & mask);
  w[2] = w[2] | (shift_left<at - 2>(v) & mask);
  w[3] = w[3] | ((at == 2 ? shift_right<1>(v) : shift_left<1>(v)) & mask);
  w[4] = w[4] | (shift_right<4 - at>(v) & mask);
  w[5] = w[5] | (shift_right<5 - at>(v) & mask);
  w[6] = w[6] | (shift_right<6 - at>(v) & mask);
  w[7] = w[7] | (shift_right<7 - at>(v) & mask);
}

struct Codes2 {
  static constexpr int kBytes = 128;
  static constexpr bool kWide = false;
  static void unpack(const uint8_t* p, U8 (&w)[8]) {
    const U8 mask = splat_u8(3);
    for (int h = 0; h < 2; ++h) {
      const U8 v = load_u8(p + 64 * h);
      w[4 * h] = v & mask;
      w[4 * h + 1] = shift_right<2>(v) & mask;
      w[4 * h + 2] = shift_right<4>(v) & mask;
      w[4 * h + 3] = shift_right<6>(v) & mask;
    }
  }
};
struct Codes3 {
  static constexpr int kBytes = 192;
  static constexpr bool kWide = false;
  static void unpack(const uint8_t* p, U8 (&w)[8]) {
    Codes2::unpack(p, w);
    add_bits<2>(p + 128, w);
  }
};
struct Codes4 {
  static constexpr int kBytes = 256;
  static constexpr bool kWide = false;
  static constexpr uint8_t kNibbles[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  static void unpack(const uint8_t* p, U8 (&w)[8]) {
    const U8 mask = splat_u8(15);
    for (int j = 0; j < 4; ++j) {
      const U8 v = load_u8(p + 64 * j);
      w[j] = v & mask;
      w[j + 4] = shift_right<4>(v) & mask;
    }
  }
};
struct Codes5 {
  static constexpr int kBytes = 320;
  static constexpr bool kWide = false;
  static void unpack(const uint8_t* p, U8 (&w)[8]) {
    Codes4::unpack(p, w);
    add_bits<4>(p + 256, w);
  }
};
struct Codes6 {
  static constexpr int kBytes = 384;
  static constexpr bool kWide = false;
  static void unpack(const uint8_t* p, U8 (&w)[8]) {
    Codes4::unpack(p, w);
    add_bit_pairs<4>(p + 256, w);
  }
};
struct Codes8 {
  static constexpr int kBytes = 512;
  static constexpr bool kWide = true;
  static void unpack(const uint8_t* p, U8 (&w)[8]) {
    for (int g = 0; g < 8; ++g) w[g] = load_u8(p + 64 * g);
  }
};
inline void unpack_table(const uint8_t* p, const uint8_t (&table)[16], U8 (&w)[8]) {
  Codes4::unpack(p, w);
  for (int g = 0; g < 8; ++g) w[g] = lookup(table, w[g]);
}
struct CodesIQ4 {
  static constexpr int kBytes = 256;
  static constexpr bool kWide = true;
  static constexpr uint8_t kNibbles[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                           129, 141, 153, 166, 181, 197, 217, 241};
  static void unpack(const uint8_t* p, U8 (&w)[8]) { unpack_table(p, kNibbles, w); }
};
struct CodesFP4 {
  static constexpr int kBytes = 256;
  static constexpr bool kWide = false;
  static constexpr uint8_t kNibbles[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                           12, 11, 10, 9,  8,  6,  4,  0};
  static void unpack(const uint8_t* p, U8 (&w)[8]) { unpack_table(p, kNibbles, w); }
};

// Scales: kUnit / kBlock vectors of scale and, with kMin, of min.

struct ScalesF16 {
  static constexpr int kUnit = 32, kBlock = 32, kBytes = 32;
  static constexpr bool kMin = false;
  static void get(const uint8_t* p, F32* scale, F32*) { scale[0] = load_f16(p); }
};
struct ScalesF16Min {
  static constexpr int kUnit = 32, kBlock = 32, kBytes = 64;
  static constexpr bool kMin = true;
  static void get(const uint8_t* p, F32* scale, F32* min) {
    scale[0] = load_f16(p);
    min[0] = load_f16(p + 32);
  }
};
struct ScalesE8M0 {
  static constexpr int kUnit = 32, kBlock = 32, kBytes = 16;
  static constexpr bool kMin = false;
  static void get(const uint8_t* p, F32* scale, F32*) { scale[0] = load_half_e8m0(p); }
};
/// scale[i] = d * byte vector i of `n`.
inline void scale_bytes(F32 d, const uint8_t* bytes, int n, F32* scale) {
  for (int i = 0; i < n; ++i) scale[i] = d * to_f32(widen_u8(bytes + 16 * i));
}
struct ScalesQ2K {
  static constexpr int kUnit = 256, kBlock = 16, kBytes = 320;
  static constexpr bool kMin = true;
  static void get(const uint8_t* p, F32* scale, F32* min) {
    const F32 d = load_f16(p), minus_dmin = splat(0) - load_f16(p + 32);
    const U8 mask = splat_u8(15);
    uint8_t bytes[64];
    for (int i = 0; i < 4; ++i) {
      const U8 v = load_u8(p + 64 + 64 * i);
      store_u8(bytes, v & mask);
      scale_bytes(d, bytes, 4, scale + 4 * i);
      store_u8(bytes, shift_right<4>(v) & mask);
      scale_bytes(minus_dmin, bytes, 4, min + 4 * i);
    }
  }
};
struct ScalesQ3K {
  static constexpr int kUnit = 256, kBlock = 16, kBytes = 224;
  static constexpr bool kMin = false;
  static void get(const uint8_t* p, F32* scale, F32*) {
    const U8 nibble = splat_u8(15), pair = splat_u8(0x30), minus_32 = splat_u8(-32);
    const U8 a = load_u8(p + 32), b = load_u8(p + 96), high = load_u8(p + 160);
    uint8_t bytes[256];
    store_u8(bytes, add_u8((a & nibble) | (shift_left<4>(high) & pair), minus_32));
    store_u8(bytes + 64, add_u8((b & nibble) | (shift_left<2>(high) & pair), minus_32));
    store_u8(bytes + 128, add_u8((shift_right<4>(a) & nibble) | (high & pair), minus_32));
    store_u8(bytes + 192,
             add_u8((shift_right<4>(b) & nibble) | (shift_right<2>(high) & pair), minus_32));
    const F32 d = load_f16(p);
    for (int i = 0; i < 16; ++i) scale[i] = d * to_f32(widen_i8(bytes + 16 * i));
  }
};
struct ScalesQ4K {
  static constexpr int kUnit = 256, kBlock = 32, kBytes = 256;
  static constexpr bool kMin = true;
  static void get(const uint8_t* p, F32* scale, F32* min) {
    const U8 nibble = splat_u8(15), pair = splat_u8(0x30), low_6 = splat_u8(63);
    const U8 s = load_u8(p + 64), m = load_u8(p + 128), low = load_u8(p + 192);
    uint8_t bytes[256];
    store_u8(bytes, s & low_6);
    store_u8(bytes + 64, (low & nibble) | (shift_right<2>(s) & pair));
    store_u8(bytes + 128, m & low_6);
    store_u8(bytes + 192, (shift_right<4>(low) & nibble) | (shift_right<2>(m) & pair));
    scale_bytes(load_f16(p), bytes, 8, scale);
    scale_bytes(splat(0) - load_f16(p + 32), bytes + 128, 8, min);
  }
};
template <int block>
struct ScalesI8 {
  static constexpr int kUnit = 256, kBlock = block, kBytes = 32 + 256 / block * 16;
  static constexpr bool kMin = false;
  static void get(const uint8_t* p, F32* scale, F32*) {
    const F32 d = load_f16(p);
    for (int i = 0; i < kUnit / kBlock; ++i) scale[i] = d * to_f32(widen_i8(p + 32 + 16 * i));
  }
};
using ScalesI8x16 = ScalesI8<16>;
using ScalesI8x32 = ScalesI8<32>;

template <class CodesT, int zero, class ScalesT>
struct Quant {
  using Codes = CodesT;
  using Scales = ScalesT;
  static constexpr int kZero = zero;
};

/// Rows of x for which a block is unpacked once.
constexpr int64_t kTileRows = 64;

/// Bytes from what is read to what is asked for: panels follow each other, so it is needed next.
constexpr int kAhead = 8192;

/// Calls body(codes, scale, min, block) for every block of a panel, and asks for what comes later.
template <class Type, class Body>
inline void for_blocks(const uint8_t* panel, int64_t k, const Body& body) {
  using Codes = typename Type::Codes;
  using Scales = typename Type::Scales;
  constexpr int kBlocks = Scales::kUnit / kQuantBlock, kParts = kQuantBlock / Scales::kBlock;
  const uint8_t* codes = panel;
  const uint8_t* scales = panel + k / kQuantBlock * Codes::kBytes;
  for (int64_t block = 0; block < k / kQuantBlock; block += kBlocks) {
    F32 scale[kBlocks * kParts], min[kBlocks * kParts];
    for (int i = 0; i < Scales::kBytes; i += 64) __builtin_prefetch(scales + i + kAhead);
    Scales::get(scales, scale, min);
    scales += Scales::kBytes;
    for (int b = 0; b < kBlocks; ++b) {
      for (int i = 0; i < Codes::kBytes; i += 64) __builtin_prefetch(codes + i + kAhead);
      body(codes, scale + b * kParts, min + b * kParts, block + b);
      codes += Codes::kBytes;
    }
  }
}
