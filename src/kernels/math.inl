// Elementary functions on 16 lanes, the same bits on every vector ISA.

constexpr int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }
constexpr int64_t round_up16(int64_t a) { return (a + 15) & ~int64_t{15}; }

/// e^x to 1.5 units in the last place; +inf above 88.72, zero where e^x < 2^-126.
/// x = n ln 2 + r, |r| <= ln 2 / 2; e^r = 1 + r + r^2 q(r), q interpolated at 5 Chebyshev nodes.
inline F32 exp(F32 x) {
  const F32 smallest = splat(-87.33654f), largest = splat(89.0f);
  const F32 bounded = max(smallest, min(largest, x));
  const F32 n = round(bounded * splat(1.44269504f));
  // ln 2 in two parts; the first has few enough bits that n times it is exact.
  F32 r = fnma(n, splat(0.693359375f), bounded);
  r = fnma(n, splat(-2.12194440e-4f), r);
  F32 q = fma(splat(1.3926213e-3f), r, splat(8.3632030e-3f));
  q = fma(q, r, splat(4.1666554e-2f));
  q = fma(q, r, splat(1.6666577e-1f));
  q = fma(q, r, splat(0.5f));
  const F32 y = fma(r * r, q, r) + splat(1);
  return zero_below(times_pow2(y, n), x, smallest);
}

/// x / (1 + e^-x)
inline F32 silu(F32 x) { return x / (splat(1) + exp(splat(0) - x)); }

/// log(1 + e^x) = max(x, 0) + log1p(e^-|x|), with log1p(t) = 2 atanh(t / (2 + t)).
inline F32 softplus(F32 x) {
  const F32 t = exp(splat(0) - abs(x));
  const F32 s = t / (splat(2) + t), s2 = s * s;
  F32 series = splat(2.0f / 15);
  series = fma(series, s2, splat(2.0f / 13));
  series = fma(series, s2, splat(2.0f / 11));
  series = fma(series, s2, splat(2.0f / 9));
  series = fma(series, s2, splat(2.0f / 7));
  series = fma(series, s2, splat(2.0f / 5));
  series = fma(series, s2, splat(2.0f / 3));
  series = fma(series, s2, splat(2));
  return fma(series, s, max(splat(0), x));
}
