// From the blocks of a GGUF file to panels (packed_layout.h). Words of 4 codes are moved as they
// are or with their bits regrouped in parallel; nothing is recomputed.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "kernels/packed.h"
#include "kernels/packed_layout.h"
#include "weights/numbers.h"

namespace sluice {
namespace {

constexpr uint32_t kLow1 = 0x01010101, kLow2 = 0x03030303, kLow4 = 0x0F0F0F0F;

/// Where one row of one block of 32 columns (or the scales of one unit) goes.
struct Lane {
  uint8_t* block;
  int lane;

  void word(int vector, uint32_t value) const {
    std::memcpy(block + 64 * vector + 4 * lane, &value, 4);
  }
  void half(int vector, const uint8_t* from) const {
    std::memcpy(block + 32 * vector + 2 * lane, from, 2);
  }
  void byte(int at, int vector, uint8_t value) const { block[at + 16 * vector + lane] = value; }
};

uint32_t word_at(const uint8_t* p, int i) { return load<uint32_t>(p + 4 * i); }

/// 16 bytes with the nibbles of columns j and j + 16: groups g and g + 4, as in a panel.
void pack_nibbles(const uint8_t* p, Lane out) {
  for (int j = 0; j < 4; ++j) out.word(j, word_at(p, j));
}

/// 32 bytes whose nibble `high` belongs to the block.
void pack_nibbles_of_bytes(const uint8_t* p, int high, Lane out) {
  for (int j = 0; j < 4; ++j) {
    const uint32_t low_half = word_at(p, j) >> (4 * high) & kLow4;
    const uint32_t high_half = word_at(p, j + 4) >> (4 * high) & kLow4;
    out.word(j, low_half | high_half << 4);
  }
}

/// 32 bytes whose bit pair `pair` belongs to the block.
void pack_pairs_of_bytes(const uint8_t* p, int pair, int first_vector, Lane out) {
  for (int h = 0; h < 2; ++h) {
    uint32_t packed = 0;
    for (int f = 0; f < 4; ++f) {
      packed |= (word_at(p, 4 * h + f) >> (2 * pair) & kLow2) << (2 * f);
    }
    out.word(first_vector + h, packed);
  }
}

/// 32 bytes whose bit `bit` belongs to the block.
void pack_bits_of_bytes(const uint8_t* p, int bit, int vector, Lane out) {
  uint32_t packed = 0;
  for (int g = 0; g < 8; ++g) packed |= (word_at(p, g) >> bit & kLow1) << g;
  out.word(vector, packed);
}

/// One bit per column: bit 4g + i goes to bit g of byte i, a transposition of a 8 x 4 bit matrix.
uint32_t transpose_bits(uint32_t x) {
  uint32_t packed = 0;
  for (int i = 0; i < 4; ++i) {
    uint32_t y = x >> i & 0x11111111;
    y = (y | y >> 3) & 0x03030303;
    y = (y | y >> 6) & 0x000F000F;
    y = (y | y >> 12) & 0xFF;
    packed |= y << (8 * i);
  }
  return packed;
}

/// One row of one file block: its codes, 32 columns at a time, and its scales.
template <DType dtype>
struct Pack;

template <>
struct Pack<DType::kQ4_0> {
  static constexpr int kFileBytes = 18;
  static void codes(const uint8_t* p, int, Lane out) { pack_nibbles(p + 2, out); }
  static void scales(const uint8_t* p, Lane out) { out.half(0, p); }
};
template <>
struct Pack<DType::kIQ4_NL> : Pack<DType::kQ4_0> {};
template <>
struct Pack<DType::kQ4_1> {
  static constexpr int kFileBytes = 20;
  static void codes(const uint8_t* p, int, Lane out) { pack_nibbles(p + 4, out); }
  static void scales(const uint8_t* p, Lane out) {
    out.half(0, p);
    out.half(1, p + 2);
  }
};
template <>
struct Pack<DType::kQ5_0> {
  static constexpr int kFileBytes = 22;
  static void codes(const uint8_t* p, int, Lane out) {
    pack_nibbles(p + 6, out);
    out.word(4, transpose_bits(load<uint32_t>(p + 2)));
  }
  static void scales(const uint8_t* p, Lane out) { out.half(0, p); }
};
template <>
struct Pack<DType::kQ5_1> {
  static constexpr int kFileBytes = 24;
  static void codes(const uint8_t* p, int, Lane out) {
    pack_nibbles(p + 8, out);
    out.word(4, transpose_bits(load<uint32_t>(p + 4)));
  }
  static void scales(const uint8_t* p, Lane out) {
    out.half(0, p);
    out.half(1, p + 2);
  }
};
template <>
struct Pack<DType::kQ8_0> {
  static constexpr int kFileBytes = 34;
  static void codes(const uint8_t* p, int, Lane out) {
    for (int g = 0; g < 8; ++g) out.word(g, word_at(p + 2, g) ^ 0x80808080);
  }
  static void scales(const uint8_t* p, Lane out) { out.half(0, p); }
};
template <>
struct Pack<DType::kMXFP4> {
  static constexpr int kFileBytes = 17;
  static void codes(const uint8_t* p, int, Lane out) { pack_nibbles(p + 1, out); }
  static void scales(const uint8_t* p, Lane out) { out.byte(0, 0, p[0]); }
};
template <>
struct Pack<DType::kQ2_K> {  // u8 scales[16], qs[64]; f16 d, dmin
  static constexpr int kFileBytes = 84;
  static void codes(const uint8_t* p, int block, Lane out) {
    pack_pairs_of_bytes(p + 16 + block / 4 * 32, block % 4, 0, out);
  }
  static void scales(const uint8_t* p, Lane out) {
    out.half(0, p + 80);
    out.half(1, p + 82);
    for (int i = 0; i < 16; ++i) out.byte(64, i, p[i]);
  }
};
template <>
struct Pack<DType::kQ3_K> {  // u8 hmask[32], qs[64], scales[12]; f16 d
  static constexpr int kFileBytes = 110;
  static void codes(const uint8_t* p, int block, Lane out) {
    pack_pairs_of_bytes(p + 32 + block / 4 * 32, block % 4, 0, out);
    pack_bits_of_bytes(p, block, 2, out);
  }
  static void scales(const uint8_t* p, Lane out) {
    out.half(0, p + 108);
    for (int i = 0; i < 12; ++i) out.byte(32, i, p[96 + i]);
  }
};
template <>
struct Pack<DType::kQ4_K> {  // f16 d, dmin; u8 scales[12], qs[128]
  static constexpr int kFileBytes = 144;
  static void codes(const uint8_t* p, int block, Lane out) {
    pack_nibbles_of_bytes(p + 16 + block / 2 * 32, block % 2, out);
  }
  static void scales(const uint8_t* p, Lane out) {
    out.half(0, p);
    out.half(1, p + 2);
    for (int i = 0; i < 12; ++i) out.byte(64, i, p[4 + i]);
  }
};
template <>
struct Pack<DType::kQ5_K> {  // f16 d, dmin; u8 scales[12], qh[32], qs[128]
  static constexpr int kFileBytes = 176;
  static void codes(const uint8_t* p, int block, Lane out) {
    pack_nibbles_of_bytes(p + 48 + block / 2 * 32, block % 2, out);
    pack_bits_of_bytes(p + 16, block, 4, out);
  }
  static void scales(const uint8_t* p, Lane out) { Pack<DType::kQ4_K>::scales(p, out); }
};
template <>
struct Pack<DType::kQ6_K> {  // u8 ql[128], qh[64]; i8 scales[16]; f16 d
  static constexpr int kFileBytes = 210;
  static void codes(const uint8_t* p, int block, Lane out) {
    const int half = block / 4, part = block % 4;
    pack_nibbles_of_bytes(p + half * 64 + part % 2 * 32, part / 2, out);
    pack_pairs_of_bytes(p + 128 + half * 32, part, 4, out);
  }
  static void scales(const uint8_t* p, Lane out) {
    out.half(0, p + 208);
    for (int i = 0; i < 16; ++i) out.byte(32, i, p[192 + i]);
  }
};
template <>
struct Pack<DType::kIQ4_XS> {  // f16 d; u16 scales_h; u8 scales_l[4], qs[128]
  static constexpr int kFileBytes = 136;
  static void codes(const uint8_t* p, int block, Lane out) {
    pack_nibbles(p + 8 + 16 * block, out);
  }
  static void scales(const uint8_t* p, Lane out) {
    out.half(0, p);
    const uint32_t high = load<uint16_t>(p + 2);
    for (int i = 0; i < 8; ++i) {
      const uint32_t low = p[4 + i / 2] >> (i % 2 * 4) & 15;
      out.byte(32, i, uint8_t((low | (high >> (2 * i) & 3) << 4) - 32));
    }
  }
};

/// rows[lane]: the file's row, nullptr beyond the last.
using PanelRows = const uint8_t* [kPanelRows];

template <class From, class Type>
void pack_quant(const PanelRows& rows, int64_t cols, uint8_t* panel) {
  constexpr int kBlocks = Type::kUnit / kQuantBlock;
  uint8_t* codes = panel;
  uint8_t* scales = panel + cols / kQuantBlock * Type::kCodeBytes;
  for (int64_t unit = 0; unit < cols / Type::kUnit; ++unit) {
    for (int lane = 0; lane < kPanelRows; ++lane) {
      if (!rows[lane]) continue;
      const uint8_t* p = rows[lane] + unit * From::kFileBytes;
      From::scales(p, {scales, lane});
      for (int b = 0; b < kBlocks; ++b) From::codes(p, b, {codes + b * Type::kCodeBytes, lane});
    }
    codes += kBlocks * Type::kCodeBytes;
    scales += Type::kScaleBytes;
  }
}

/// Plain values, moved.
template <class Values>
void pack_plain(const PanelRows& rows, int64_t cols, uint8_t* panel) {
  constexpr int64_t kBytes = Values::kBytes / kPanelRows;
  for (int64_t first = 0; first < cols; first += 32) {
    const int64_t last = std::min(first + 32, cols);
    for (int lane = 0; lane < kPanelRows; ++lane) {
      if (!rows[lane]) continue;
      for (int64_t c = first; c < last; ++c) {
        std::memcpy(panel + (c * kPanelRows + lane) * kBytes, rows[lane] + c * kBytes, kBytes);
      }
    }
  }
}

/// Values of a type without a kernel, decoded to f32 block by block.
void pack_decoded(const PanelRows& rows, DType dtype, int64_t cols, uint8_t* panel) {
  const DTypeInfo& type = info(dtype);
  for (int lane = 0; lane < kPanelRows; ++lane) {
    if (!rows[lane]) continue;
    float values[256];
    const int64_t step = 256 / type.block_elements * type.block_elements;
    CHECK(step > 0);
    for (int64_t first = 0; first < cols; first += step) {
      const int64_t n = std::min(step, cols - first);
      decode_to_f32(dtype, reinterpret_cast<const std::byte*>(rows[lane]) + bytes_of(dtype, first),
                    n, values);
      for (int64_t i = 0; i < n; ++i) {
        std::memcpy(panel + ((first + i) * kPanelRows + lane) * 4, &values[i], 4);
      }
    }
  }
}

using PackPanel = void (*)(const PanelRows&, int64_t cols, uint8_t* panel);

PackPanel pack_panel_of(DType dtype) {
  switch (dtype) {
#define PACKED_PLAIN(name, dtype, Values) \
  case DType::dtype:                      \
    return pack_plain<layout::Values>;
#define PACKED_QUANT(name, dtype, Codes, zero, Scales) \
  case DType::dtype:                                   \
    return pack_quant<Pack<DType::dtype>, layout::Quant<layout::Codes, zero, layout::Scales>>;
#include "kernels/packed_types.inc"
#undef PACKED_PLAIN
#undef PACKED_QUANT
    default:
      return nullptr;
  }
}

}  // namespace

void pack_panels(const MatrixSource& source, DType packed, int64_t first, int64_t last,
                 std::byte* out) {
  CHECK(packed == packed_dtype(source.dtype));
  const size_t panel_bytes = packed_panel_bytes(packed, source.cols);
  const PackPanel pack = pack_panel_of(source.dtype);
  for (int64_t p = first; p < last; ++p) {
    PanelRows rows = {};
    for (int lane = 0; lane < kPanelRows; ++lane) {
      const int64_t row = p * kPanelRows + lane;
      if (row >= source.rows) continue;
      const size_t offset = size_t(source.stored_row(row)) * source.row_bytes;
      rows[lane] = reinterpret_cast<const uint8_t*>(source.data + offset);
    }
    uint8_t* panel = reinterpret_cast<uint8_t*>(out) + size_t(p - first) * panel_bytes;
    // Rows that do not exist, and what follows the scales.
    if (!rows[kPanelRows - 1]) {
      std::memset(panel, 0, panel_bytes);
    } else {
      std::memset(panel + panel_bytes - 64, 0, 64);
    }
    if (pack) {
      pack(rows, source.cols, panel);
    } else {
      pack_decoded(rows, source.dtype, source.cols, panel);
    }
  }
}

}  // namespace sluice
