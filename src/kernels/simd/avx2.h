// Vector names over AVX2: 16 lanes of f32 in two registers. Included inside a namespace.

struct F32 {
  __m256 lo, hi;
};
/// Values of F32 that the register file holds.
inline constexpr int kF32Registers = 8;

inline F32 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, F32 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
inline F32 splat(float a) { return {_mm256_set1_ps(a), _mm256_set1_ps(a)}; }
inline F32 operator+(F32 a, F32 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
inline F32 operator-(F32 a, F32 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
inline F32 operator*(F32 a, F32 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
inline F32 operator/(F32 a, F32 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
/// b where a or b is NaN.
inline F32 max(F32 a, F32 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
inline F32 min(F32 a, F32 b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
inline F32 abs(F32 a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
/// a * b + c, rounded once.
inline F32 fma(F32 a, F32 b, F32 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
/// c - a * b, rounded once.
inline F32 fnma(F32 a, F32 b, F32 c) {
  return {_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}
/// To the nearest integer, ties to even.
inline F32 round(F32 a) {
  return {_mm256_round_ps(a.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          _mm256_round_ps(a.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline __m256 times_pow2(__m256 a, __m256 n) {
  // In two factors, as 2^128 is not a float; the first product is exact.
  const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
  const __m256i rest = _mm256_sub_epi32(whole, half), bias = _mm256_set1_epi32(127);
  const __m256 f1 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
  const __m256 f2 = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
  return _mm256_mul_ps(_mm256_mul_ps(a, f1), f2);
}
/// a * 2^n for integers n in [-126, 128].
inline F32 times_pow2(F32 a, F32 n) { return {times_pow2(a.lo, n.lo), times_pow2(a.hi, n.hi)}; }
/// a, but zero where x < limit.
inline F32 zero_below(F32 a, F32 x, F32 limit) {
  return {_mm256_and_ps(_mm256_cmp_ps(x.lo, limit.lo, _CMP_NLT_UQ), a.lo),
          _mm256_and_ps(_mm256_cmp_ps(x.hi, limit.hi, _CMP_NLT_UQ), a.hi)};
}
/// All ones in the first n (0 to 8) lanes.
inline __m256i first_lanes(int64_t n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
}
/// Lanes [first, last) of a, `other` in the rest.
inline F32 keep_lanes(F32 a, int64_t first, int64_t last, F32 other) {
  const __m256i lo = _mm256_andnot_si256(first_lanes(first), first_lanes(last));
  const __m256i hi = _mm256_andnot_si256(first_lanes(first - 8), first_lanes(last - 8));
  return {_mm256_blendv_ps(other.lo, a.lo, _mm256_castsi256_ps(lo)),
          _mm256_blendv_ps(other.hi, a.hi, _mm256_castsi256_ps(hi))};
}
/// The lowest lane in which a and b are equal; 16 if none.
inline int64_t first_equal(F32 a, F32 b) {
  const int lo = _mm256_movemask_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ));
  const int hi = _mm256_movemask_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ));
  return __builtin_ctz(static_cast<unsigned>(lo | hi << 8) | 0x10000u);
}
/// The first n (0 to 16) of p[0], p[stride], p[2 * stride], ..., zero in the other lanes.
inline F32 load_strided(const float* p, int64_t stride, int64_t n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i index = _mm256_mullo_epi32(lane, _mm256_set1_epi32(static_cast<int>(stride)));
  const __m256 zero = _mm256_setzero_ps();
  return {_mm256_mask_i32gather_ps(zero, p, index, _mm256_castsi256_ps(first_lanes(n)), 4),
          _mm256_mask_i32gather_ps(zero, p + 8 * stride, index,
                                   _mm256_castsi256_ps(first_lanes(n - 8)), 4)};
}
/// 16 values of f16.
inline F32 load(const uint16_t* p) {
  const __m128i* from = reinterpret_cast<const __m128i*>(p);
  return {_mm256_cvtph_ps(_mm_loadu_si128(from)), _mm256_cvtph_ps(_mm_loadu_si128(from + 1))};
}
/// To f16, nearest even.
inline void store(uint16_t* p, F32 a) {
  __m128i* to = reinterpret_cast<__m128i*>(p);
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(to, _mm256_cvtps_ph(a.lo, kNearest));
  _mm_storeu_si128(to + 1, _mm256_cvtps_ph(a.hi, kNearest));
}
inline float lane0(F32 a) { return _mm256_cvtss_f32(a.lo); }
/// The first n (0 to 16) lanes of p, zero in the others.
inline F32 load_first(const float* p, int64_t n) {
  return {_mm256_maskload_ps(p, first_lanes(n)), _mm256_maskload_ps(p + 8, first_lanes(n - 8))};
}
inline void store_first(float* p, F32 a, int64_t n) {
  _mm256_maskstore_ps(p, first_lanes(n), a.lo);
  _mm256_maskstore_ps(p + 8, first_lanes(n - 8), a.hi);
}
/// Lanes 0..7 plus lanes 8..15, then pairs at distance 4, 2, 1: the same order on every ISA.
inline float sum(F32 a) {
  const __m256 s8 = _mm256_add_ps(a.lo, a.hi);
  const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
  const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
  return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}
/// The largest lane; NaN lanes lose or win alike on every ISA.
inline float max_lane(F32 a) {
  const __m256 m8 = _mm256_max_ps(a.lo, a.hi);
  const __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
  const __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
  return _mm_cvtss_f32(_mm_max_ss(m2, _mm_shuffle_ps(m2, m2, 1)));
}
