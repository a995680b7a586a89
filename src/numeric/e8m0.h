// e8m0: a bare exponent byte, value 2^(byte - 127), 0xFF = NaN. The scale type of MX blocks (OCP Microscaling Formats
// specification 1.0, section 5.4.1).
#pragma once
#include <bit>
#include <cstdint>

namespace wasmquant {

inline constexpr int kE8m0Bias = 127;
inline constexpr uint8_t kE8m0NaN = 0xFF;

constexpr float decode_e8m0(uint8_t byte) {
  if (byte == kE8m0NaN) return std::bit_cast<float>(0x7FC00000u);
  // 2^-127 is a subnormal of float32.
  return std::bit_cast<float>(byte == 0 ? 0x00400000u : static_cast<uint32_t>(byte) << 23);
}

/// The nearest power of two of a positive finite value, halfway (1.5 * 2^e) up; as torch casts to float8_e8m0fnu.
constexpr uint8_t encode_e8m0(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7FFFFFFF;
  if (bits > 0x7F800000) return kE8m0NaN;
  const uint32_t exponent = bits >> 23;
  // Below 2^-126 the mantissa has no hidden bit: 2^-127 is 0x00400000, halfway to 2^-126 is 0x00600000.
  if (exponent == 0) return bits >= 0x00600000 ? 1 : 0;
  const uint32_t rounded = exponent + (bits >> 22 & 1);
  return static_cast<uint8_t>(rounded > 254 ? 254 : rounded);
}

/// What AMD Quark's exporter writes for a positive block scale: round(log2(scale)). Scales below 2^-126 count as
/// 2^-126, so byte 0 never appears. Rounding in the exponent switches at sqrt(2) = 1.0110101000001001111001100...b.
constexpr uint8_t export_e8m0(float scale) {
  const uint32_t bits = std::bit_cast<uint32_t>(scale) & 0x7FFFFFFF;
  if (bits > 0x7F800000) return kE8m0NaN;
  if (bits < 0x00800000) return 1;
  const uint32_t exponent = (bits >> 23) + ((bits & 0x7FFFFF) > 0x3504F3 ? 1 : 0);
  return static_cast<uint8_t>(exponent > 254 ? 254 : exponent);
}

static_assert(decode_e8m0(127) == 1.0f && decode_e8m0(254) == 0x1p127f && decode_e8m0(0) == 0x1p-127f);
static_assert(encode_e8m0(1.5f) == 128 && encode_e8m0(1.4999999f) == 127);

}  // namespace wasmquant
