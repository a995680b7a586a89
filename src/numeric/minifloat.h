// Scalar encode and decode of any small binary float: sign | exponent | mantissa, gradual underflow.
//   value = (-1)^sign * significand * 2^(max(exponent, 1) - bias - mantissa_bits)
//   significand = mantissa, plus 2^mantissa_bits when exponent > 0
// Encoding is nearest, ties to the even code. Source of the formats: dtype.h.
#pragma once
#include <bit>
#include <cstdint>

#include "numeric/dtype.h"

namespace wasmquant {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;
  bool is_signed = true;

  constexpr uint32_t sign_mask() const { return is_signed ? 1u << (exponent_bits + mantissa_bits) : 0u; }
  constexpr uint32_t magnitude_mask() const { return (1u << (exponent_bits + mantissa_bits)) - 1; }
  constexpr uint32_t mantissa_mask() const { return (1u << mantissa_bits) - 1; }
  /// Magnitude code of infinity; only for ieee.
  constexpr uint32_t infinity() const { return magnitude_mask() & ~mantissa_mask(); }
  /// Magnitude code of the largest finite value.
  constexpr uint32_t max_code() const {
    return specials == Specials::ieee ? infinity() - 1 : magnitude_mask() - (specials == Specials::nan_only ? 1 : 0);
  }
  /// The NaN that encoding makes: all ones for 8 bits (as torch), quiet bit only for 16 bits. 0 when there is none.
  constexpr uint32_t nan_code() const {
    if (specials == Specials::none) return 0;
    if (specials == Specials::nan_only || exponent_bits + mantissa_bits < 8) return magnitude_mask();
    return infinity() | 1u << (mantissa_bits - 1);
  }
  constexpr bool is_nan(uint32_t code) const {
    const uint32_t magnitude = code & magnitude_mask();
    return specials == Specials::ieee ? magnitude > infinity()
                                      : specials == Specials::nan_only && magnitude > max_code();
  }
};

/// For float dtypes only.
constexpr FloatFormat float_format_of(Dtype dtype) {
  const DtypeInfo& info = info_of(dtype);
  return {info.exponent_bits, info.mantissa_bits, info.bias, info.specials, info.is_signed};
}

/// What becomes of values that round beyond the largest finite one.
enum class Overflow : uint8_t { saturate, infinity };

/// Nearest code of x. NaN gives nan_code() with the sign of x, and for 16-bit formats the top bits of its payload.
/// Overflow::infinity needs an ieee format. Unsigned formats: negative values give 0.
constexpr uint32_t encode(const FloatFormat& format, float x, Overflow overflow) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 31 ? format.sign_mask() : 0;
  const uint32_t exponent_field = bits >> 23 & 0xFF;
  const uint32_t fraction = bits & 0x7FFFFF;
  if (exponent_field == 0xFF && fraction != 0) {
    const bool carries_payload = format.exponent_bits + format.mantissa_bits >= 15;
    return sign | format.nan_code() | (carries_payload ? fraction >> (23 - format.mantissa_bits) : 0);
  }
  if (bits >> 31 && !format.is_signed) return 0;
  const uint32_t beyond = overflow == Overflow::infinity ? format.infinity() : format.max_code();
  if (exponent_field == 0xFF) return sign | beyond;

  // |x| = significand * 2^(exponent - 23), in units of the target's step at that exponent.
  const uint32_t significand = exponent_field > 0 ? fraction | 0x800000 : fraction;
  const int exponent = (exponent_field > 0 ? static_cast<int>(exponent_field) : 1) - 127;
  const int step_exponent = exponent > 1 - format.bias ? exponent : 1 - format.bias;
  const int shift = 23 - format.mantissa_bits + (step_exponent - exponent);
  uint64_t units = 0;
  if (shift <= 25) {  // beyond that |x| is below a quarter of a step
    const uint64_t half = uint64_t{1} << (shift - 1), rest = significand & ((uint64_t{1} << shift) - 1);
    units = significand >> shift;
    if (rest > half || (rest == half && units % 2 == 1)) ++units;
  }
  // A carry out of the mantissa moves into the exponent by itself.
  const int64_t code = static_cast<int64_t>(units) + (int64_t{step_exponent + format.bias - 1} << format.mantissa_bits);
  return sign | (code > int64_t{format.max_code()} ? beyond : static_cast<uint32_t>(code));
}

/// Exact. NaN codes give a quiet NaN with the code's sign; 16-bit formats keep the payload.
constexpr float decode(const FloatFormat& format, uint32_t code) {
  const uint32_t sign = code & format.sign_mask() ? 0x80000000u : 0u;
  const uint32_t magnitude = code & format.magnitude_mask();
  const uint32_t mantissa = magnitude & format.mantissa_mask();
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  if (format.is_nan(code)) {
    const bool carries_payload = format.exponent_bits + format.mantissa_bits >= 15;
    return std::bit_cast<float>(sign | 0x7FC00000u | (carries_payload ? mantissa << (23 - format.mantissa_bits) : 0u));
  }
  if (format.specials == Specials::ieee && magnitude == format.infinity())
    return std::bit_cast<float>(sign | 0x7F800000u);
  const uint32_t significand = exponent > 0 ? mantissa | 1u << format.mantissa_bits : mantissa;
  const double step = detail::power_of_two((exponent > 0 ? exponent : 1) - format.bias - format.mantissa_bits);
  const float value = static_cast<float>(significand * step);
  return sign ? -value : value;
}

static_assert(decode(float_format_of(Dtype::fp8_e4m3), 0x7E) == 448.0f);
static_assert(decode(float_format_of(Dtype::fp8_e5m2), 0x01) == 0x1p-16f);
static_assert(encode(float_format_of(Dtype::float16), 65519.0f, Overflow::infinity) == 0x7BFF);
static_assert(encode(float_format_of(Dtype::float16), 65520.0f, Overflow::infinity) == 0x7C00);

}  // namespace wasmquant
