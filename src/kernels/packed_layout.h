// Where a weight lies in a packed panel, and what it is worth, one weight at a time: the definition
// of the layout. Formats of the values: ggml's ggml-quants.c (GGUF types), OCP MX 1.0 (MXFP4).
//
// A panel holds 16 rows of all columns. Plain types: a vector of 16 rows per column. Quantised
// types: first the codes of all blocks of 32 columns, then the scales of all units of 32 or 256
// columns. Byte 4 * row + i of the 64 bytes called group g holds columns 4 * g + i of the block:
// the operand of a multiply-add of bytes over four neighbours. Codes of fewer than 8 bits share
// bytes: groups g and g + 4 the nibbles of a vector, groups 4h .. 4h + 3 the bit pairs of vector h,
// groups 0 .. 7 the bits of a vector. Higher bits follow the lower ones of the same block.
#pragma once

#include <cstdint>

#include "kernels/args.h"
#include "weights/numbers.h"

namespace sluice::layout {

/// The f16 at index i of an array without alignment.
inline float half_at(const uint8_t* p, int i) { return f16_to_f32(load<uint16_t>(p + 2 * i)); }

inline uint8_t nibble(const uint8_t* block, int group, int byte) {
  return (block[group % 4 * 64 + byte] >> (group / 4 * 4)) & 15;
}
inline uint8_t bit_pair(const uint8_t* block, int group, int byte) {
  return (block[group / 4 * 64 + byte] >> (group % 4 * 2)) & 3;
}
inline uint8_t bit(const uint8_t* block, int group, int byte) { return (block[byte] >> group) & 1; }

/// Values of plain types: bytes of one vector of 16 rows, and the value of a row in it.
struct ValuesF32 {
  static constexpr int kBytes = 64;
  static float get(const uint8_t* p, int row) { return load<float>(p + 4 * row); }
};
struct ValuesF16 {
  static constexpr int kBytes = 32;
  static float get(const uint8_t* p, int row) { return half_at(p, row); }
};
struct ValuesBF16 {
  static constexpr int kBytes = 32;
  static float get(const uint8_t* p, int row) { return bf16_to_f32(load<uint16_t>(p + 2 * row)); }
};

/// Codes: bytes of a block of 32 columns x 16 rows, and the code of group g, byte b of the group.
struct Codes2 {
  static constexpr int kBytes = 128;
  static int get(const uint8_t* block, int g, int b) { return bit_pair(block, g, b); }
};
struct Codes3 {
  static constexpr int kBytes = 192;
  static int get(const uint8_t* block, int g, int b) {
    return bit_pair(block, g, b) | bit(block + 128, g, b) << 2;
  }
};
struct Codes4 {
  static constexpr int kBytes = 256;
  static int get(const uint8_t* block, int g, int b) { return nibble(block, g, b); }
};
struct Codes5 {
  static constexpr int kBytes = 320;
  static int get(const uint8_t* block, int g, int b) {
    return nibble(block, g, b) | bit(block + 256, g, b) << 4;
  }
};
struct Codes6 {
  static constexpr int kBytes = 384;
  static int get(const uint8_t* block, int g, int b) {
    return nibble(block, g, b) | bit_pair(block + 256, g, b) << 4;
  }
};
struct Codes8 {
  static constexpr int kBytes = 512;
  static int get(const uint8_t* block, int g, int b) { return block[g * 64 + b]; }
};
/// Nibbles that stand for 16 steps of a curve, here raised by 128.
struct CodesIQ4 {
  static constexpr int kBytes = 256;
  static constexpr int16_t kValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
  static int get(const uint8_t* block, int g, int b) { return kValues[nibble(block, g, b)] + 128; }
};
/// Twice the value of an FP4 E2M1 number, raised by 12.
struct CodesFP4 {
  static constexpr int kBytes = 256;
  static constexpr int kValues[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  static int get(const uint8_t* block, int g, int b) { return kValues[nibble(block, g, b)] + 12; }
};

struct Scale {
  float scale, min;
};

/// Scales: bytes of a unit of kUnit columns x 16 rows, and scale `sub` of a row in it; a scale
/// covers kBlock columns.
struct ScalesF16 {  // f16 d[16]
  static constexpr int kUnit = 32, kBlock = 32, kBytes = 32;
  static Scale get(const uint8_t* p, int, int row) { return {half_at(p, row), 0}; }
};
struct ScalesF16Min {  // f16 d[16], m[16]
  static constexpr int kUnit = 32, kBlock = 32, kBytes = 64;
  static Scale get(const uint8_t* p, int, int row) {
    return {half_at(p, row), half_at(p, 16 + row)};
  }
};
struct ScalesE8M0 {  // u8 exponent[16]; half the power of two, since the codes are doubled
  static constexpr int kUnit = 32, kBlock = 32, kBytes = 16;
  static Scale get(const uint8_t* p, int, int row) {
    return {p[row] == 0 ? 0x1p-128f : f8_e8m0_to_f32(p[row]) / 2, 0};
  }
};
struct ScalesQ2K {  // f16 d[16], dmin[16]; u8 [16 subs][16]: scale | min << 4
  static constexpr int kUnit = 256, kBlock = 16, kBytes = 320;
  static Scale get(const uint8_t* p, int sub, int row) {
    const int packed = p[64 + sub * 16 + row];
    return {half_at(p, row) * float(packed & 15), -half_at(p, 16 + row) * float(packed >> 4)};
  }
};
struct ScalesQ3K {  // f16 d[16]; u8 [12][16], the 12 bytes as in the file
  static constexpr int kUnit = 256, kBlock = 16, kBytes = 224;
  static Scale get(const uint8_t* p, int sub, int row) {
    const int low = p[32 + sub % 8 * 16 + row] >> (sub / 8 * 4) & 15;
    const int high = p[32 + (8 + sub % 4) * 16 + row] >> (sub / 4 * 2) & 3;
    return {half_at(p, row) * float((low | high << 4) - 32), 0};
  }
};
struct ScalesQ4K {  // f16 d[16], dmin[16]; u8 [12][16], the 12 bytes as in the file
  static constexpr int kUnit = 256, kBlock = 32, kBytes = 256;
  static Scale get(const uint8_t* p, int sub, int row) {
    const uint8_t* bytes = p + 64 + row;
    const int s = bytes[sub % 4 * 16], m = bytes[(4 + sub % 4) * 16],
              low = bytes[(8 + sub % 4) * 16];
    const int scale = sub < 4 ? s & 63 : (low & 15) | s >> 6 << 4;
    const int min = sub < 4 ? m & 63 : low >> 4 | m >> 6 << 4;
    return {half_at(p, row) * float(scale), -half_at(p, 16 + row) * float(min)};
  }
};
template <int block>
struct ScalesI8 {  // f16 d[16]; i8 [subs][16]
  static constexpr int kUnit = 256, kBlock = block, kBytes = 32 + 256 / block * 16;
  static Scale get(const uint8_t* p, int sub, int row) {
    return {half_at(p, row) * float(int8_t(p[32 + sub * 16 + row])), 0};
  }
};
using ScalesI8x16 = ScalesI8<16>;
using ScalesI8x32 = ScalesI8<32>;

/// A quantised type: bytes of a panel's parts and its weights.
template <class Codes, int zero, class Scales>
struct Quant {
  static constexpr int kZero = zero, kBlock = Scales::kBlock, kUnit = Scales::kUnit;
  static constexpr int kCodeBytes = Codes::kBytes, kScaleBytes = Scales::kBytes;

  /// code - zero of a weight in a panel of k columns.
  static int code(const uint8_t* panel, int64_t column, int row) {
    const int in_block = int(column % kQuantBlock);
    return Codes::get(panel + column / kQuantBlock * Codes::kBytes, in_block / 4,
                      row * 4 + in_block % 4) -
           zero;
  }
  static Scale scale(const uint8_t* panel, int64_t k, int64_t column, int row) {
    const uint8_t* scales = panel + k / kQuantBlock * Codes::kBytes;
    return Scales::get(scales + column / kUnit * Scales::kBytes, int(column % kUnit) / kBlock, row);
  }
};

}  // namespace sluice::layout
