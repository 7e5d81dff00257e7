// The lattice points of the IQ block formats and the value tables of the 4-bit formats.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice {

template <int kElements, size_t kEntries>
using Codebook = std::array<std::array<int8_t, kElements>, kEntries>;

extern const Codebook<8, 256> kIq2XxsGrid;
extern const Codebook<8, 512> kIq2XsGrid;
extern const Codebook<8, 1024> kIq2SGrid;
extern const Codebook<8, 2048> kIq1Grid;  // IQ1_S and IQ1_M
extern const Codebook<4, 256> kIq3XxsGrid;
extern const Codebook<4, 512> kIq3SGrid;

/// IQ4_NL and IQ4_XS: the value of each 4-bit code, in units of the block scale.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

/// E2M1 (MXFP4, NVFP4).
inline constexpr float kE2m1Values[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                          -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

}  // namespace sluice
