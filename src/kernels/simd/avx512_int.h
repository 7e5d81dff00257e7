// Integer vector names over AVX-512: 16 lanes of i32, 64 bytes. Included after avx512.h.

struct I32 {
  __m512i v;
};
/// 64 bytes: 4 per 32-bit lane.
struct U8 {
  __m512i v;
};

inline I32 splat_i32(int32_t a) { return {_mm512_set1_epi32(a)}; }
inline F32 to_f32(I32 a) { return {_mm512_cvtepi32_ps(a.v)}; }

inline U8 load_u8(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
inline void store_u8(uint8_t* p, U8 a) { _mm512_storeu_si512(p, a.v); }
inline U8 splat_u8(int a) { return {_mm512_set1_epi8(static_cast<char>(a))}; }
inline U8 operator&(U8 a, U8 b) { return {_mm512_and_si512(a.v, b.v)}; }
inline U8 operator|(U8 a, U8 b) { return {_mm512_or_si512(a.v, b.v)}; }
inline U8 add_u8(U8 a, U8 b) { return {_mm512_add_epi8(a.v, b.v)}; }
/// Shifts of 16-bit halves: bits cross from one byte to its neighbour.
template <int n>
inline U8 shift_right(U8 a) {
  return {_mm512_srli_epi16(a.v, n)};
}
template <int n>
inline U8 shift_left(U8 a) {
  return {_mm512_slli_epi16(a.v, n)};
}
/// table[a] per byte; a < 16.
inline U8 lookup(const uint8_t (&table)[16], U8 a) {
  const __m128i t = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), a.v)};
}

/// What dot_wide() subtracts from the codes of its own accord.
inline constexpr int kWideZero = 0;
/// Per lane: acc + sum of codes[4] * x[4], for codes of at most 127 and x of at least -127.
inline I32 dot(I32 acc, U8 codes, const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, 4);
  return {_mm512_dpbusd_epi32(acc.v, codes.v, _mm512_set1_epi32(four))};
}
/// The same for all codes, with kWideZero subtracted from each.
inline I32 dot_wide(I32 acc, U8 codes, const int8_t* x) { return dot(acc, codes, x); }

/// Byte i of each lane minus `zero`, with bias = splat(2^23 + zero): the byte becomes the last bits
/// of a float with exponent 23, so that a subtraction converts it.
template <int i>
inline F32 byte_to_f32(U8 a, F32 bias) {
  const __m512i shifted = i == 0 ? a.v : _mm512_srli_epi32(a.v, 8 * i);
  const __m512i bits = _mm512_ternarylogic_epi32(shifted, _mm512_set1_epi32(255),
                                                 _mm512_set1_epi32(0x4B000000), 0xEA);  // a & b | c
  return {_mm512_sub_ps(_mm512_castsi512_ps(bits), bias.v)};
}

inline constexpr bool kHasNibbleLookup = true;
/// table[nibble i of each lane].
template <int i>
inline F32 lookup_nibble(U8 a, const float (&table)[16]) {
  const __m512i shifted = i == 0 ? a.v : _mm512_srli_epi32(a.v, 4 * i);
  return {_mm512_permutexvar_ps(shifted, _mm512_loadu_ps(table))};  // looks at 4 bits of an index
}

inline F32 load_f16(const uint8_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline F32 load_bf16(const uint8_t* p) {
  const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16))};
}
inline I32 widen_u8(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline I32 widen_i8(const uint8_t* p) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
/// 2^(exponent - 128) of 16 bytes; exponents 0 and 1 give subnormals, 255 is NaN.
inline F32 load_half_e8m0(const uint8_t* p) {
  const __m512i e = widen_u8(p).v;
  const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(e, _mm512_set1_epi32(1)), 23);
  const __m512i tiny = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
  const __mmask16 small = _mm512_cmplt_epi32_mask(e, _mm512_set1_epi32(2));
  const __mmask16 nan = _mm512_cmpeq_epi32_mask(e, _mm512_set1_epi32(255));
  const __m512i number = _mm512_mask_mov_epi32(normal, small, tiny);
  return {_mm512_castsi512_ps(_mm512_mask_mov_epi32(number, nan, _mm512_set1_epi32(0x7FC00000)))};
}

/// The bits of |a| as integers: ordered as the numbers are, infinity and NaN above all.
inline I32 magnitude_bits(F32 a) {
  return {_mm512_and_si512(_mm512_castps_si512(a.v), _mm512_set1_epi32(0x7FFFFFFF))};
}
inline I32 max(I32 a, I32 b) { return {_mm512_max_epi32(a.v, b.v)}; }
inline int32_t max_lane(I32 a) { return _mm512_reduce_max_epi32(a.v); }
inline int32_t sum(I32 a) { return _mm512_reduce_add_epi32(a.v); }
/// To the nearest integer, ties to even.
inline I32 round_to_i32(F32 a) {
  return {_mm512_cvt_roundps_epi32(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
/// 16 values that fit in a byte.
inline void store_i8(int8_t* p, I32 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
