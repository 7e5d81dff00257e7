// Small floating-point formats to f32, and unaligned little-endian loads.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace sluice {

static_assert(std::endian::native == std::endian::little, "checkpoint files are little-endian");

/// Reads a T from any address.
template <typename T>
inline T load(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

/// IEEE binary16. Multiplying by 2^112 moves the exponent bias from 15 to 127, subnormals included.
inline float f16_to_f32(uint16_t h) {
  const uint32_t magnitude = uint32_t(h & 0x7FFF) << 13;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t special = magnitude | 0x7F800000u;  // infinity or NaN
  const uint32_t bits = magnitude >= 0x0F800000u ? special : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(bits | uint32_t(h & 0x8000) << 16);
}

inline float bf16_to_f32(uint16_t h) { return std::bit_cast<float>(uint32_t(h) << 16); }

/// E5M2 is binary16 without its low byte.
inline float f8_e5m2_to_f32(uint8_t b) { return f16_to_f32(uint16_t(b << 8)); }

/// E4M3FN: bias 7, no infinity, NaN only where all other bits are set.
inline float f8_e4m3_to_f32(uint8_t b) {
  if ((b & 0x7F) == 0x7F) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = std::bit_cast<float>(uint32_t(b & 0x7F) << 20) * 0x1p120f;
  return b & 0x80 ? -magnitude : magnitude;
}

/// E8M0: 2^(b - 127); 255 is NaN, 0 is a subnormal f32.
inline float f8_e8m0_to_f32(uint8_t b) {
  if (b == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(b == 0 ? 0x00400000u : uint32_t(b) << 23);
}

}  // namespace sluice
