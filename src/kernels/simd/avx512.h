// Vector names over AVX-512: 16 lanes of f32 in one register. Included inside a namespace.

struct F32 {
  __m512 v;
};
/// Values of F32 that the register file holds.
inline constexpr int kF32Registers = 32;

inline F32 load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, F32 a) { _mm512_storeu_ps(p, a.v); }
inline F32 splat(float a) { return {_mm512_set1_ps(a)}; }
inline F32 operator+(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F32 operator-(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F32 operator*(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F32 operator/(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
/// b where a or b is NaN.
inline F32 max(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
inline F32 min(F32 a, F32 b) { return {_mm512_min_ps(a.v, b.v)}; }
inline F32 abs(F32 a) { return {_mm512_abs_ps(a.v)}; }
/// a * b + c, rounded once.
inline F32 fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
/// c - a * b, rounded once.
inline F32 fnma(F32 a, F32 b, F32 c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
/// To the nearest integer, ties to even.
inline F32 round(F32 a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
/// a * 2^n for integers n in [-126, 128].
inline F32 times_pow2(F32 a, F32 n) { return {_mm512_scalef_ps(a.v, n.v)}; }
/// a, but zero where x < limit.
inline F32 zero_below(F32 a, F32 x, F32 limit) {
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.v, limit.v, _CMP_NLT_UQ), a.v)};
}
/// Lanes [first, last) of a, `other` in the rest.
inline F32 keep_lanes(F32 a, int64_t first, int64_t last, F32 other) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __mmask16 from = _mm512_cmpge_epi32_mask(lane, _mm512_set1_epi32(static_cast<int>(first)));
  const __mmask16 to = _mm512_cmplt_epi32_mask(lane, _mm512_set1_epi32(static_cast<int>(last)));
  return {_mm512_mask_mov_ps(other.v, from & to, a.v)};
}
/// The lowest lane in which a and b are equal; 16 if none.
inline int64_t first_equal(F32 a, F32 b) {
  return __builtin_ctz(_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ) | 0x10000u);
}
/// The first n (0 to 16) of p[0], p[stride], p[2 * stride], ..., zero in the other lanes.
inline F32 load_strided(const float* p, int64_t stride, int64_t n) {
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i index = _mm512_mullo_epi32(lane, _mm512_set1_epi32(static_cast<int>(stride)));
  return {_mm512_mask_i32gather_ps(_mm512_setzero_ps(), static_cast<__mmask16>((1u << n) - 1),
                                   index, p, 4)};
}
/// 16 values of f16.
inline F32 load(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
/// To f16, nearest even.
inline void store(uint16_t* p, F32 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline float lane0(F32 a) { return _mm512_cvtss_f32(a.v); }
/// The first n (0 to 16) lanes of p, zero in the others.
inline F32 load_first(const float* p, int64_t n) {
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p)};
}
inline void store_first(float* p, F32 a, int64_t n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), a.v);
}
/// Lanes 0..7 plus lanes 8..15, then pairs at distance 4, 2, 1: the same order on every ISA.
inline float sum(F32 a) {
  const __m256 lo = _mm512_castps512_ps256(a.v);
  const __m256 hi = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a.v), 1));
  const __m256 s8 = _mm256_add_ps(lo, hi);
  const __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
  const __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
  return _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps(s2, s2, 1)));
}
/// The largest lane; NaN lanes lose or win alike on every ISA.
inline float max_lane(F32 a) {
  const __m256 lo = _mm512_castps512_ps256(a.v);
  const __m256 hi = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a.v), 1));
  const __m256 m8 = _mm256_max_ps(lo, hi);
  const __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
  const __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
  return _mm_cvtss_f32(_mm_max_ss(m2, _mm_shuffle_ps(m2, m2, 1)));
}
