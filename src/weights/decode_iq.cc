// Codebook block formats: groups of 8 (or 4) weights are one entry of a grid, with separate signs.
#include <array>
#include <bit>

#include "weights/codebooks.h"
#include "weights/decode_blocks.h"
#include "weights/numbers.h"

namespace sluice {
namespace {

float half_at(const uint8_t* p) { return f16_to_f32(load<uint16_t>(p)); }

/// Seven stored sign bits; the eighth makes their number even.
unsigned with_parity(unsigned seven) { return seven | unsigned(std::popcount(seven) & 1) << 7; }

/// out[j] = d grid[j], negated where bit j of `signs` is set.
template <size_t kN>
void put(const std::array<int8_t, kN>& grid, float d, unsigned signs, float* out) {
  for (size_t j = 0; j < kN; ++j) {
    const float w = d * float(grid[j]);
    out[j] = signs >> j & 1 ? -w : w;
  }
}

/// The 1-bit formats: out[j] = d (grid[j] + delta).
void put_shifted(const std::array<int8_t, 8>& grid, float d, float delta, float* out) {
  for (size_t j = 0; j < 8; ++j) out[j] = d * (float(grid[j]) + delta);
}

constexpr float kIq1Delta = 0.125f;

}  // namespace

// d, then per 32 weights: 4 grid indices, and a word of four 7-bit sign fields and a 4-bit scale s.
// w = d (s + 1/2) / 4 grid
void decode_iq2_xxs(const uint8_t* p, float* out) {
  const float d = half_at(p);
  for (int group = 0; group < 8; ++group) {
    const uint8_t* index = p + 2 + group * 8;
    const uint32_t word = load<uint32_t>(index + 4);
    const float scale = d * (0.5f + float(word >> 28)) * 0.25f;
    for (int k = 0; k < 4; ++k, out += 8) {
      put(kIq2XxsGrid[index[k]], scale, with_parity(word >> 7 * k & 127), out);
    }
  }
}

// d, 32 words (9-bit grid index, 7 signs), 8 bytes with a 4-bit scale s per 16 weights.
// w = d (s + 1/2) / 4 grid
void decode_iq2_xs(const uint8_t* p, float* out) {
  const float d = half_at(p);
  for (int k = 0; k < 32; ++k, out += 8) {
    const unsigned word = load<uint16_t>(p + 2 + 2 * k);
    const int s = p[66 + k / 4] >> k / 2 % 2 * 4 & 15;
    const float scale = d * (0.5f + float(s)) * 0.25f;
    put(kIq2XsGrid[word & 511], scale, with_parity(word >> 9), out);
  }
}

// d, 32 low index bytes, 32 sign bytes, 8 bytes of upper index bits, 8 bytes of 4-bit scales s.
// w = d (s + 1/2) / 4 grid
void decode_iq2_s(const uint8_t* p, float* out) {
  const float d = half_at(p);
  for (int k = 0; k < 32; ++k, out += 8) {
    const unsigned upper = p[66 + k / 4] >> k % 4 * 2 & 3;
    const int s = p[74 + k / 4] >> k / 2 % 2 * 4 & 15;
    const float scale = d * (0.5f + float(s)) * 0.25f;
    put(kIq2SGrid[p[2 + k] | upper << 8], scale, p[34 + k], out);
  }
}

// d, 64 grid indices of 4 weights, then per 32 weights a word of signs and scale as in IQ2_XXS.
// w = d (s + 1/2) / 2 grid
void decode_iq3_xxs(const uint8_t* p, float* out) {
  const float d = half_at(p);
  for (int k = 0; k < 64; ++k, out += 4) {
    const uint32_t word = load<uint32_t>(p + 66 + k / 8 * 4);
    const float scale = d * (0.5f + float(word >> 28)) * 0.5f;
    const unsigned signs = with_parity(word >> 7 * (k / 2 % 4) & 127);
    put(kIq3XxsGrid[p[2 + k]], scale, signs >> k % 2 * 4, out);
  }
}

// d, 64 low index bytes, 8 bytes of ninth index bits, 32 sign bytes, 4 bytes of 4-bit scales s (one
// per 32 weights). w = d (2 s + 1) grid
void decode_iq3_s(const uint8_t* p, float* out) {
  const float d = half_at(p);
  for (int k = 0; k < 64; ++k, out += 4) {
    const unsigned ninth = p[66 + k / 8] >> k % 8 & 1;
    const int s = p[106 + k / 16] >> k / 8 % 2 * 4 & 15;
    put(kIq3SGrid[p[2 + k] | ninth << 8], d * float(2 * s + 1), p[74 + k / 2] >> k % 2 * 4, out);
  }
}

// d, 32 low index bytes, then per 32 weights a word: four 3-bit upper index fields, 3-bit scale s,
// sign of the shift. w = d (2 s + 1) (grid +- 1/8)
void decode_iq1_s(const uint8_t* p, float* out) {
  const float d = half_at(p);
  for (int k = 0; k < 32; ++k, out += 8) {
    const unsigned word = load<uint16_t>(p + 34 + k / 4 * 2);
    const unsigned upper = word >> k % 4 * 3 & 7;
    const float scale = d * float(2 * (word >> 12 & 7) + 1);
    const float delta = word & 0x8000 ? -kIq1Delta : kIq1Delta;
    put_shifted(kIq1Grid[p[2 + k] | upper << 8], scale, delta, out);
  }
}

// 32 low index bytes, 16 bytes with per 8 weights 3 upper index bits and the sign of the shift,
// four words: 3-bit scale s per 16 weights, and in the top nibbles the binary16 d. w = as IQ1_S
void decode_iq1_m(const uint8_t* p, float* out) {
  const auto word = [&](int i) { return unsigned(load<uint16_t>(p + 48 + 2 * i)); };
  const float d = f16_to_f32(
      uint16_t(word(0) >> 12 | word(1) >> 12 << 4 | word(2) >> 12 << 8 | word(3) >> 12 << 12));
  for (int k = 0; k < 32; ++k, out += 8) {
    const unsigned nibble = p[32 + k / 2] >> k % 2 * 4 & 15;
    const float scale = d * float(2 * (word(k / 8) >> k / 2 % 4 * 3 & 7) + 1);
    const float delta = nibble & 8 ? -kIq1Delta : kIq1Delta;
    put_shifted(kIq1Grid[p[k] | (nibble & 7) << 8], scale, delta, out);
  }
}

// d, 16 bytes in the order of Q4_0. w = d value[q]
void decode_iq4_nl(const uint8_t* p, float* out) {
  const float d = half_at(p);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * float(kIq4Values[p[2 + j] & 15]);
    out[j + 16] = d * float(kIq4Values[p[2 + j] >> 4]);
  }
}

// d, word of upper scale bits, 4 bytes of lower scale nibbles, then per 32 weights 16 bytes in the
// order of Q4_0. w = d (s - 32) value[q]
void decode_iq4_xs(const uint8_t* p, float* out) {
  const float d = half_at(p);
  const unsigned upper = load<uint16_t>(p + 2);
  for (int group = 0; group < 8; ++group, out += 32) {
    const int low = p[4 + group / 2] >> group % 2 * 4 & 15;
    const int s = low | int(upper >> 2 * group & 3) << 4;
    const float scale = d * float(s - 32);
    const uint8_t* q = p + 8 + group * 16;
    for (int j = 0; j < 16; ++j) {
      out[j] = scale * float(kIq4Values[q[j] & 15]);
      out[j + 16] = scale * float(kIq4Values[q[j] >> 4]);
    }
  }
}

}  // namespace sluice
