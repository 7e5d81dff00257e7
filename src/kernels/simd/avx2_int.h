// Integer vector names over AVX2: 16 lanes of i32 or 64 bytes in two registers. Included after
// avx2.h.

struct I32 {
  __m256i lo, hi;
};
/// 64 bytes: 4 per 32-bit lane.
struct U8 {
  __m256i lo, hi;
};

inline __m256i load_si(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline __m128i load_half_si(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}

inline I32 splat_i32(int32_t a) { return {_mm256_set1_epi32(a), _mm256_set1_epi32(a)}; }
inline F32 to_f32(I32 a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }

inline U8 load_u8(const uint8_t* p) { return {load_si(p), load_si(p + 32)}; }
inline void store_u8(uint8_t* p, U8 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), a.hi);
}
inline U8 splat_u8(int a) {
  return {_mm256_set1_epi8(static_cast<char>(a)), _mm256_set1_epi8(static_cast<char>(a))};
}
inline U8 operator&(U8 a, U8 b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
inline U8 operator|(U8 a, U8 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
inline U8 add_u8(U8 a, U8 b) { return {_mm256_add_epi8(a.lo, b.lo), _mm256_add_epi8(a.hi, b.hi)}; }
/// Shifts of 16-bit halves: bits cross from one byte to its neighbour.
template <int n>
inline U8 shift_right(U8 a) {
  return {_mm256_srli_epi16(a.lo, n), _mm256_srli_epi16(a.hi, n)};
}
template <int n>
inline U8 shift_left(U8 a) {
  return {_mm256_slli_epi16(a.lo, n), _mm256_slli_epi16(a.hi, n)};
}
/// table[a] per byte; a < 16.
inline U8 lookup(const uint8_t (&table)[16], U8 a) {
  const __m256i t = _mm256_broadcastsi128_si256(load_half_si(table));
  return {_mm256_shuffle_epi8(t, a.lo), _mm256_shuffle_epi8(t, a.hi)};
}

/// What dot_wide() subtracts from the codes of its own accord.
inline constexpr int kWideZero = 128;
inline __m256i splat_four(const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, 4);
  return _mm256_set1_epi32(four);
}
inline __m256i add_pairs(__m256i acc, __m256i pairs) {
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
/// Per lane: acc + sum of codes[4] * x[4], for codes of at most 127 and x of at least -127 (two
/// products must fit in 16 bits).
inline I32 dot(I32 acc, U8 codes, const int8_t* x) {
  const __m256i four = splat_four(x);
  return {add_pairs(acc.lo, _mm256_maddubs_epi16(codes.lo, four)),
          add_pairs(acc.hi, _mm256_maddubs_epi16(codes.hi, four))};
}
/// The same for all codes, with kWideZero subtracted from each: |code - 128| * +-x fits.
inline I32 dot_wide(I32 acc, U8 codes, const int8_t* x) {
  const __m256i four = splat_four(x), top = _mm256_set1_epi8(-128);
  const __m256i lo = _mm256_xor_si256(codes.lo, top), hi = _mm256_xor_si256(codes.hi, top);
  return {add_pairs(acc.lo, _mm256_maddubs_epi16(_mm256_abs_epi8(lo), _mm256_sign_epi8(four, lo))),
          add_pairs(acc.hi, _mm256_maddubs_epi16(_mm256_abs_epi8(hi), _mm256_sign_epi8(four, hi)))};
}

inline __m256 byte_to_f32_half(__m256i shifted, __m256 bias) {
  const __m256i bits = _mm256_or_si256(_mm256_and_si256(shifted, _mm256_set1_epi32(255)),
                                       _mm256_set1_epi32(0x4B000000));
  return _mm256_sub_ps(_mm256_castsi256_ps(bits), bias);
}
/// Byte i of each lane minus `zero`, with bias = splat(2^23 + zero): the byte becomes the last bits
/// of a float with exponent 23, so that a subtraction converts it.
template <int i>
inline F32 byte_to_f32(U8 a, F32 bias) {
  return {byte_to_f32_half(_mm256_srli_epi32(a.lo, 8 * i), bias.lo),
          byte_to_f32_half(_mm256_srli_epi32(a.hi, 8 * i), bias.hi)};
}

inline constexpr bool kHasNibbleLookup = false;

inline F32 load_f16(const uint8_t* p) {
  return {_mm256_cvtph_ps(load_half_si(p)), _mm256_cvtph_ps(load_half_si(p + 16))};
}
inline F32 load_bf16(const uint8_t* p) {
  const __m256i lo = _mm256_cvtepu16_epi32(load_half_si(p));
  const __m256i hi = _mm256_cvtepu16_epi32(load_half_si(p + 16));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(lo, 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(hi, 16))};
}
inline I32 widen_u8(const uint8_t* p) {
  const __m128i bytes = load_half_si(p);
  return {_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
}
inline I32 widen_i8(const uint8_t* p) {
  const __m128i bytes = load_half_si(p);
  return {_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8))};
}
inline __m256 half_e8m0(__m256i e) {
  const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
  const __m256i tiny = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
  const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e);
  const __m256i nan = _mm256_cmpeq_epi32(e, _mm256_set1_epi32(255));
  const __m256i number = _mm256_blendv_epi8(normal, tiny, small);
  return _mm256_castsi256_ps(_mm256_blendv_epi8(number, _mm256_set1_epi32(0x7FC00000), nan));
}
/// 2^(exponent - 128) of 16 bytes; exponents 0 and 1 give subnormals, 255 is NaN.
inline F32 load_half_e8m0(const uint8_t* p) {
  const I32 e = widen_u8(p);
  return {half_e8m0(e.lo), half_e8m0(e.hi)};
}

/// The bits of |a| as integers: ordered as the numbers are, infinity and NaN above all.
inline I32 magnitude_bits(F32 a) {
  const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
  return {_mm256_and_si256(_mm256_castps_si256(a.lo), mask),
          _mm256_and_si256(_mm256_castps_si256(a.hi), mask)};
}
inline I32 max(I32 a, I32 b) {
  return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)};
}
inline int32_t max_lane(I32 a) {
  const __m256i m8 = _mm256_max_epi32(a.lo, a.hi);
  const __m128i m4 = _mm_max_epi32(_mm256_castsi256_si128(m8), _mm256_extracti128_si256(m8, 1));
  const __m128i m2 = _mm_max_epi32(m4, _mm_shuffle_epi32(m4, 0x4E));
  return _mm_cvtsi128_si32(_mm_max_epi32(m2, _mm_shuffle_epi32(m2, 0xB1)));
}
inline int32_t sum(I32 a) {
  const __m256i s8 = _mm256_add_epi32(a.lo, a.hi);
  const __m128i s4 = _mm_add_epi32(_mm256_castsi256_si128(s8), _mm256_extracti128_si256(s8, 1));
  const __m128i s2 = _mm_add_epi32(s4, _mm_shuffle_epi32(s4, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(s2, _mm_shuffle_epi32(s2, 0xB1)));
}
/// To the nearest integer, ties to even.
inline I32 round_to_i32(F32 a) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_cvtps_epi32(_mm256_round_ps(a.lo, kNearest)),
          _mm256_cvtps_epi32(_mm256_round_ps(a.hi, kNearest))};
}
/// 16 values that fit in a byte.
inline void store_i8(int8_t* p, I32 a) {
  const __m256i halves = _mm256_packs_epi32(a.lo, a.hi);  // 0..3 8..11 | 4..7 12..15
  const __m128i low = _mm256_castsi256_si128(halves), high = _mm256_extracti128_si256(halves, 1);
  const __m128i bytes =
      _mm_packs_epi16(_mm_unpacklo_epi64(low, high), _mm_unpackhi_epi64(low, high));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}
