// Scalar encode and decode of any small binary float: sign | exponent | mantissa, gradual underflow.
//   value = (-1)^sign * significand * 2^(max(exponent, 1) - bias - mantissa_bits)
//   significand = mantissa, plus 2^mantissa_bits when exponent > 0
// Encoding is nearest, ties to the even code. Source of the formats: dtype.h.
#pragma once
#include <bit>
#include <cstdint>

#include "numeric/dtype.h"

namespace wasmquant {

/// 2^e as float64; e in -1022..1023.
constexpr double power_of_two(int e) { return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52); }

/// The bits of a small float.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;
  bool is_signed = true;
  Zeros zeros = Zeros::two;

  constexpr uint32_t bits() const { return static_cast<uint32_t>(exponent_bits + mantissa_bits + (is_signed ? 1 : 0)); }
  constexpr uint32_t sign_mask() const { return is_signed ? 1u << (exponent_bits + mantissa_bits) : 0u; }
  constexpr uint32_t magnitude_mask() const { return (1u << (exponent_bits + mantissa_bits)) - 1; }
  constexpr uint32_t mantissa_mask() const { return (1u << mantissa_bits) - 1; }
  /// Magnitude code of infinity; only for ieee.
  constexpr uint32_t infinity() const { return magnitude_mask() & ~mantissa_mask(); }
  /// Magnitude code of the largest finite value.
  constexpr uint32_t max_code() const {
    return specials == Specials::ieee ? infinity() - 1 : magnitude_mask() - (specials == Specials::nan_only ? 1 : 0);
  }
  /// The largest finite value.
  constexpr double max_finite() const {
    const uint32_t code = max_code();
    const int exponent = static_cast<int>(code >> mantissa_bits);
    const uint32_t mantissa = code & mantissa_mask();
    return (exponent > 0 ? mantissa | 1u << mantissa_bits : mantissa) *
           power_of_two((exponent > 0 ? exponent : 1) - bias - mantissa_bits);
  }
  /// floor(log2(max_finite)): what OCP calls emax.
  constexpr int max_exponent() const { return static_cast<int>(max_code() >> mantissa_bits) - bias; }
  constexpr bool has_nan() const { return specials != Specials::none; }
  /// The NaN that encoding produces, without sign: all ones for 8 bits (as in torch), quiet bit only for 16 bits. 0 if
  /// the format has no NaN; only the sign bit for fnuz.
  constexpr uint32_t nan_code() const {
    if (specials == Specials::none) return 0;
    if (specials == Specials::fnuz) return sign_mask();
    if (specials == Specials::nan_only || exponent_bits + mantissa_bits < 8) return magnitude_mask();
    return infinity() | 1u << (mantissa_bits - 1);
  }
  constexpr bool is_nan(uint32_t code) const {
    const uint32_t magnitude = code & magnitude_mask();
    switch (specials) {
      case Specials::none:
        return false;
      case Specials::ieee:
        return magnitude > infinity();
      case Specials::nan_only:
        return magnitude > max_code();
      case Specials::fnuz:
        return code == sign_mask();
    }
    return false;
  }
};

/// For float dtypes with their own row (not minifloat).
constexpr FloatFormat float_format_of(Dtype dtype) {
  const DtypeInfo& info = info_of(dtype);
  return {info.exponent_bits, info.mantissa_bits, info.bias, info.specials, info.is_signed, info.zeros};
}

/// The plain family: bias 2^(e-1) - 1, every code finite. e 1..7, m 0..10.
constexpr FloatFormat plain_minifloat(int exponent_bits, int mantissa_bits) {
  return {exponent_bits, mantissa_bits, (1 << (exponent_bits - 1)) - 1, Specials::none, true, Zeros::two};
}

/// What values become that round beyond the largest finite one. infinity: NaN if the format has no infinity.
enum class Overflow : uint8_t { saturate, infinity };

/// Nearest code of x. NaN gives nan_code() with the sign of x, and for 16-bit formats the top bits of its payload;
/// zero where the format has no NaN. Overflow::infinity needs a format with specials.
/// Unsigned formats: negative values give 0.
constexpr uint32_t encode(const FloatFormat& format, float x, Overflow overflow) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 31 ? format.sign_mask() : 0;
  const uint32_t exponent_field = bits >> 23 & 0xFF;
  const uint32_t fraction = bits & 0x7FFFFF;
  if (exponent_field == 0xFF && fraction != 0) {
    if (!format.has_nan()) return format.zeros == Zeros::two ? sign : 0;
    const bool carries_payload = format.exponent_bits + format.mantissa_bits == 15;
    return sign | format.nan_code() | (carries_payload ? fraction >> (23 - format.mantissa_bits) : 0);
  }
  if (bits >> 31 && !format.is_signed) return 0;
  const uint32_t beyond = overflow == Overflow::saturate      ? format.max_code()
                          : format.specials == Specials::ieee ? format.infinity()
                                                              : format.nan_code();
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
  // A carry out of the mantissa increments the exponent. Ties go to the even unit: for m > 0 that is the even code, for
  // m = 0 (powers of two) always the larger one, as in Brevitas.
  const int64_t code = static_cast<int64_t>(units) + (int64_t{step_exponent + format.bias - 1} << format.mantissa_bits);
  if (format.zeros == Zeros::one && code == 0) return 0;
  return sign | (code > int64_t{format.max_code()} ? beyond : static_cast<uint32_t>(code));
}

/// Exact. NaN codes give a quiet NaN with the code's sign; 16-bit formats keep the payload.
constexpr float decode(const FloatFormat& format, uint32_t code) {
  const uint32_t sign = code & format.sign_mask() ? 0x80000000u : 0u;
  const uint32_t magnitude = code & format.magnitude_mask();
  const uint32_t mantissa = magnitude & format.mantissa_mask();
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  if (format.is_nan(code)) {
    const bool carries_payload = format.exponent_bits + format.mantissa_bits == 15;
    return std::bit_cast<float>(sign | 0x7FC00000u | (carries_payload ? mantissa << (23 - format.mantissa_bits) : 0u));
  }
  if (format.specials == Specials::ieee && magnitude == format.infinity())
    return std::bit_cast<float>(sign | 0x7F800000u);
  const uint32_t significand = exponent > 0 ? mantissa | 1u << format.mantissa_bits : mantissa;
  const double step = power_of_two((exponent > 0 ? exponent : 1) - format.bias - format.mantissa_bits);
  const float value = static_cast<float>(significand * step);
  return sign ? -value : value;
}

static_assert(float_format_of(Dtype::fp8_e4m3).max_finite() == 448.0);
static_assert(float_format_of(Dtype::fp8_e5m2).max_finite() == 57344.0);
static_assert(float_format_of(Dtype::fp8_e5m3).max_finite() == 114688.0);
static_assert(float_format_of(Dtype::fp8_e4m3fnuz).max_finite() == 240.0);
static_assert(float_format_of(Dtype::fp8_e5m2fnuz).max_finite() == 57344.0);
static_assert(float_format_of(Dtype::fp6_e3m2).max_finite() == 28.0);
static_assert(float_format_of(Dtype::fp6_e2m3).max_finite() == 7.5);
static_assert(float_format_of(Dtype::fp4).max_finite() == 6.0);
static_assert(float_format_of(Dtype::float16).max_finite() == 65504.0);
static_assert(plain_minifloat(4, 3).max_finite() == 480.0 && plain_minifloat(5, 10).max_finite() == 131008.0);
static_assert(decode(float_format_of(Dtype::fp8_e4m3), 0x7E) == 448.0f);
static_assert(decode(float_format_of(Dtype::fp8_e5m2), 0x01) == 0x1p-16f);
static_assert(encode(float_format_of(Dtype::float16), 65519.0f, Overflow::infinity) == 0x7BFF);
static_assert(encode(float_format_of(Dtype::float16), 65520.0f, Overflow::infinity) == 0x7C00);

}  // namespace wasmquant
