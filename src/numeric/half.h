// float16 (1 | 5, bias 15 | 10), one number at a time in few instructions: the scales of block types. minifloat.h has
// the general code for any small float.
#pragma once
#include <bit>
#include <cstdint>

namespace wasmquant {

/// Nearest even with gradual underflow; overflow becomes infinity, any NaN 0xFE00 (what invalid x86 operations give).
constexpr uint16_t half_of(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), magnitude = bits & 0x7FFFFFFF, sign = bits >> 16 & 0x8000;
  if (magnitude > 0x7F800000) return 0xFE00;
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7C00);  // 2^16 and above
  if (magnitude < 0x38800000) {  // below 2^-14: adding 0.5 rounds to steps of 2^-24
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - 0x3F000000));
  }
  // Rebias by 127 - 15 and round away 13 bits; 65520 and above carry into infinity.
  const uint32_t rounded = magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | rounded >> 13);
}

/// Exact; NaN stays NaN.
constexpr float from_half(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 0x3FF;
  if (exponent == 0) {  // mantissa * 2^-24, without a subnormal operand
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

/// The float16 in which a positive scale is stored: the nearest, but below 2^-14 the next larger, because half a step of
/// 2^-24 is 6 % of 4e-7, and a scale that is rounded down leaves as much of its range beyond the codes.
constexpr float half_scale_of(float scale) {
  const float nearest = from_half(half_of(scale));
  return nearest < scale && scale < 0x1p-14f ? nearest + 0x1p-24f : nearest;
}

}  // namespace wasmquant
