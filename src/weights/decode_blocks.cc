// Linear block formats. In every comment q is a weight's integer code; d, m and dmin are binary16.
#include "weights/decode_blocks.h"

#include "weights/codebooks.h"
#include "weights/numbers.h"

namespace sluice {
namespace {

float half_at(const uint8_t* p) { return f16_to_f32(load<uint16_t>(p)); }

/// The fifth bit of codes j (low) and j + 16 (high) of a 32-weight block, in place.
struct FifthBits {
  uint32_t bits;
  int low(int j) const { return int((bits >> j) << 4 & 16); }
  int high(int j) const { return int((bits >> (j + 16)) << 4 & 16); }
};

struct ScaleMin {
  int scale, min;
};

/// Q4_K, Q5_K: eight 6-bit scales and eight 6-bit minima in 12 bytes.
ScaleMin scale_min(const uint8_t* s, int j) {
  if (j < 4) return {s[j] & 63, s[j + 4] & 63};
  return {(s[j + 4] & 15) | (s[j - 4] >> 6) << 4, (s[j + 4] >> 4) | (s[j] >> 6) << 4};
}

/// Q3_K: 6-bit scale j of 16 in 12 bytes: 8 bytes of low nibbles, 4 bytes of upper pairs of bits.
int q3_k_scale(const uint8_t* s, int j) {
  const int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
  const int high = s[8 + j % 4] >> (2 * (j / 4)) & 3;
  return (low | high << 4) - 32;
}

}  // namespace

// d, 16 bytes: byte j holds codes j (low nibble) and j + 16. w = d (q - 8)
void decode_q4_0(const uint8_t* p, float* out) {
  const float d = half_at(p);
  const uint8_t* q = p + 2;
  for (int j = 0; j < 16; ++j) {
    out[j] = d * float((q[j] & 15) - 8);
    out[j + 16] = d * float((q[j] >> 4) - 8);
  }
}

// d, m, 16 bytes as in Q4_0. w = d q + m
void decode_q4_1(const uint8_t* p, float* out) {
  const float d = half_at(p), m = half_at(p + 2);
  const uint8_t* q = p + 4;
  for (int j = 0; j < 16; ++j) {
    out[j] = d * float(q[j] & 15) + m;
    out[j + 16] = d * float(q[j] >> 4) + m;
  }
}

// d, 4 bytes of fifth bits, 16 bytes as in Q4_0. w = d (q - 16)
void decode_q5_0(const uint8_t* p, float* out) {
  const float d = half_at(p);
  const FifthBits fifth{load<uint32_t>(p + 2)};
  const uint8_t* q = p + 6;
  for (int j = 0; j < 16; ++j) {
    out[j] = d * float(((q[j] & 15) | fifth.low(j)) - 16);
    out[j + 16] = d * float(((q[j] >> 4) | fifth.high(j)) - 16);
  }
}

// d, m, 4 bytes of fifth bits, 16 bytes as in Q4_0. w = d q + m
void decode_q5_1(const uint8_t* p, float* out) {
  const float d = half_at(p), m = half_at(p + 2);
  const FifthBits fifth{load<uint32_t>(p + 4)};
  const uint8_t* q = p + 8;
  for (int j = 0; j < 16; ++j) {
    out[j] = d * float((q[j] & 15) | fifth.low(j)) + m;
    out[j + 16] = d * float((q[j] >> 4) | fifth.high(j)) + m;
  }
}

// d, 32 signed bytes. w = d q
void decode_q8_0(const uint8_t* p, float* out) {
  const float d = half_at(p);
  for (int j = 0; j < 32; ++j) out[j] = d * float(int8_t(p[2 + j]));
}

// 16 bytes (low nibble scale, high nibble min, one per 16 weights), 64 bytes of codes, d, dmin.
// Each half of 128 weights has 32 bytes; plane s of 32 weights is bits 2s, 2s + 1 of each.
// w = d scale q - dmin min
void decode_q2_k(const uint8_t* p, float* out) {
  const float d = half_at(p + 80), dmin = half_at(p + 82);
  for (int group = 0; group < 16; ++group) {
    const uint8_t* q = p + 16 + group / 8 * 32 + group % 2 * 16;
    const int shift = group % 8 / 2 * 2;
    const float scale = d * float(p[group] & 15), min = dmin * float(p[group] >> 4);
    for (int j = 0; j < 16; ++j) out[16 * group + j] = scale * float(q[j] >> shift & 3) - min;
  }
}

// 32 bytes of third bits (plane s of 32 weights is bit s), 64 bytes of codes as in Q2_K, 12 bytes
// of 6-bit scales, d. w = d scale (q - 4), where q has three bits
void decode_q3_k(const uint8_t* p, float* out) {
  const float d = half_at(p + 108);
  for (int group = 0; group < 16; ++group) {
    const uint8_t* third = p + group % 2 * 16;
    const uint8_t* q = p + 32 + group / 8 * 32 + group % 2 * 16;
    const int shift = group % 8 / 2 * 2, plane = group / 2;
    const float scale = d * float(q3_k_scale(p + 96, group));
    for (int j = 0; j < 16; ++j) {
      const int code = (q[j] >> shift & 3) | (third[j] >> plane & 1) << 2;
      out[16 * group + j] = scale * float(code - 4);
    }
  }
}

// d, dmin, 12 bytes of scales and minima, 128 bytes: each 32 bytes hold one group of 32 weights in
// their low nibbles and the next in their high nibbles. w = d scale q - dmin min
void decode_q4_k(const uint8_t* p, float* out) {
  const float d = half_at(p), dmin = half_at(p + 2);
  for (int group = 0; group < 8; ++group) {
    const auto [scale_code, min_code] = scale_min(p + 4, group);
    const float scale = d * float(scale_code), min = dmin * float(min_code);
    const uint8_t* q = p + 16 + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int j = 0; j < 32; ++j) out[32 * group + j] = scale * float(q[j] >> shift & 15) - min;
  }
}

// As Q4_K with 32 bytes of fifth bits (group g is bit g) before the nibbles.
void decode_q5_k(const uint8_t* p, float* out) {
  const float d = half_at(p), dmin = half_at(p + 2);
  const uint8_t* fifth = p + 16;
  for (int group = 0; group < 8; ++group) {
    const auto [scale_code, min_code] = scale_min(p + 4, group);
    const float scale = d * float(scale_code), min = dmin * float(min_code);
    const uint8_t* q = p + 48 + group / 2 * 32;
    const int shift = group % 2 * 4;
    for (int j = 0; j < 32; ++j) {
      const int code = (q[j] >> shift & 15) | (fifth[j] >> group & 1) << 4;
      out[32 * group + j] = scale * float(code) - min;
    }
  }
}

// 128 bytes of low nibbles, 64 bytes of upper pairs of bits, 16 signed scales, d. Per half of 128
// weights: groups 0, 1 are the low nibbles of 64 bytes and groups 2, 3 the high ones; group g has
// bits 2g, 2g + 1 of 32 bytes. w = d scale (q - 32)
void decode_q6_k(const uint8_t* p, float* out) {
  const float d = half_at(p + 208);
  for (int group = 0; group < 8; ++group) {
    const int half = group / 4, g = group % 4;
    const uint8_t* low = p + half * 64 + g % 2 * 32;
    const uint8_t* high = p + 128 + half * 32;
    for (int j = 0; j < 32; ++j) {
      const int code = (low[j] >> (g / 2 * 4) & 15) | (high[j] >> (2 * g) & 3) << 4;
      const float scale = d * float(int8_t(p[192 + 2 * group + j / 16]));
      out[32 * group + j] = scale * float(code - 32);
    }
  }
}

// d as f32, 256 signed bytes, 16 sums that decoding does not need. w = d q
void decode_q8_k(const uint8_t* p, float* out) {
  const float d = load<float>(p);
  for (int j = 0; j < 256; ++j) out[j] = d * float(int8_t(p[4 + j]));
}

// Ternary, five digits to a byte: a byte is ceil(256 t / 243) for t = sum of digit_n 3^(4 - n), so
// that the upper byte of 3 (b 3^n mod 256) is digit n. 32 bytes hold weights 0-159 (digit n of byte
// j is weight 32 n + j), 16 bytes weights 160-239, 4 bytes of four digits the rest; d.
// w = d (digit - 1)
void decode_tq1_0(const uint8_t* p, float* out) {
  constexpr int kPowers[5] = {1, 3, 9, 27, 81};
  const float d = half_at(p + 52);
  const auto section = [&](int width, int n_digits) {
    for (int n = 0; n < n_digits; ++n) {
      for (int j = 0; j < width; ++j) {
        const int digit = (p[j] * kPowers[n] & 255) * 3 >> 8;
        *out++ = d * float(digit - 1);
      }
    }
    p += width;
  };
  section(32, 5);
  section(16, 5);
  section(4, 4);
}

// 64 bytes of 2-bit codes as in Q2_K, d. w = d (q - 1)
void decode_tq2_0(const uint8_t* p, float* out) {
  const float d = half_at(p + 64);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* q = p + group / 4 * 32;
    const int shift = group % 4 * 2;
    for (int j = 0; j < 32; ++j) out[32 * group + j] = d * float((q[j] >> shift & 3) - 1);
  }
}

// E8M0 scale, 16 bytes of E2M1 codes in the order of Q4_0. w = 2^(e - 127) e2m1
void decode_mxfp4(const uint8_t* p, float* out) {
  const float d = f8_e8m0_to_f32(p[0]);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * kE2m1Values[p[1 + j] & 15];
    out[j + 16] = d * kE2m1Values[p[1 + j] >> 4];
  }
}

// Four E4M3 scales without sign (0x7F counts as 0), then per 16 weights 8 bytes of E2M1 codes: low
// nibbles first, then high nibbles. w = scale e2m1
void decode_nvfp4(const uint8_t* p, float* out) {
  for (int group = 0; group < 4; ++group) {
    const uint8_t code = p[group] & 0x7F;
    const float d = code == 0x7F ? 0.0f : f8_e4m3_to_f32(code);
    const uint8_t* q = p + 4 + group * 8;
    for (int j = 0; j < 8; ++j) {
      out[16 * group + j] = d * kE2m1Values[q[j] & 15];
      out[16 * group + 8 + j] = d * kE2m1Values[q[j] >> 4];
    }
  }
}

}  // namespace sluice
