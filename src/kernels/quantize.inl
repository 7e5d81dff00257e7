// Per block of 32: scale = max|x| / 127, q = round(x * (127 / max|x|)), ties to even; sums of q.
// Blocks below 1e-30 become zero (127 / max|x| would overflow); a block with an infinity or NaN
// gets the scale NaN, so that whatever is computed from it is NaN.
void quantize_i8(const QuantizeArgs& a) {
  for (int64_t r = 0; r < a.n; ++r) {
    const float* x = a.x + r * a.x_stride;
    int8_t* q = a.out.q + r * a.out.q_stride;
    float* scale = a.out.scale + r * a.out.scale_stride;
    int32_t* sums = a.out.sum + r * a.out.sum_stride;
    for (int64_t block = 0; block < a.k / kQuantBlock; ++block) {
      const F32 x0 = load(x + block * 32), x1 = load(x + block * 32 + 16);
      const int32_t bits = max_lane(max(magnitude_bits(x0), magnitude_bits(x1)));
      float largest;
      __builtin_memcpy(&largest, &bits, 4);
      const bool finite = bits < 0x7F800000;
      const float inverse = finite && largest >= 1e-30f ? 127.0f / largest : 0.0f;
      scale[block] = finite ? (inverse == 0 ? 0.0f : largest / 127.0f) : __builtin_nanf("");
      const F32 clean0 = finite ? x0 : splat(0), clean1 = finite ? x1 : splat(0);
      const I32 q0 = round_to_i32(clean0 * splat(inverse));
      const I32 q1 = round_to_i32(clean1 * splat(inverse));
      store_i8(q + block * 32, q0);
      store_i8(q + block * 32 + 16, q1);
      sums[2 * block] = sum(q0);
      sums[2 * block + 1] = sum(q1);
    }
  }
}
