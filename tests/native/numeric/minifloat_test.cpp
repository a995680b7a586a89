// Every code of every small float, and the values between them.
#include "numeric/minifloat.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace wasmquant {
namespace {

/// Every float of the table and every plain minifloat of up to 16 bits.
std::vector<FloatFormat> formats() {
  std::vector<FloatFormat> all;
  for (const DtypeInfo& info : kDtypes)
    if (info.kind == DtypeKind::floating && info.dtype != Dtype::minifloat) all.push_back(float_format_of(info.dtype));
  for (int e = 1; e <= 7; ++e)
    for (int m = 0; m <= 10 && e + m < 16; ++m) all.push_back(plain_minifloat(e, m));
  return all;
}

/// What the code of -0 becomes: itself, +0 where zeros have no sign, NaN for fnuz.
bool is_negative_zero(const FloatFormat& f, uint32_t code) { return f.is_signed && code == f.sign_mask(); }

/// The definition, in float64 and with powers from the math library.
double value_of(const FloatFormat& f, uint32_t magnitude) {
  const int exponent = static_cast<int>(magnitude >> f.mantissa_bits);
  const double fraction = std::ldexp(static_cast<double>(magnitude & f.mantissa_mask()), -f.mantissa_bits);
  return exponent == 0 ? std::ldexp(fraction, 1 - f.bias) : std::ldexp(1.0 + fraction, exponent - f.bias);
}

TEST_CASE("every code decodes to its definition and encodes back") {
  for (const FloatFormat& f : formats()) {
    CAPTURE(f.exponent_bits);
    CAPTURE(f.mantissa_bits);
    for (uint32_t magnitude = 0; magnitude <= f.magnitude_mask(); ++magnitude) {
      for (uint32_t sign : {0u, f.sign_mask()}) {
        const uint32_t code = sign | magnitude;
        const float v = decode(f, code);
        if (f.specials == Specials::fnuz && is_negative_zero(f, code)) {
          REQUIRE(std::isnan(v));
          REQUIRE(encode(f, v, Overflow::saturate) == code);
          REQUIRE(encode(f, -0.0f, Overflow::saturate) == 0);
        } else if (f.zeros == Zeros::one && is_negative_zero(f, code)) {
          REQUIRE(v == 0.0f);
          REQUIRE(encode(f, v, Overflow::saturate) == 0);
        } else if (magnitude <= f.max_code()) {
          REQUIRE(static_cast<double>(std::fabs(v)) == value_of(f, magnitude));
          REQUIRE(std::signbit(v) == (sign != 0));
          REQUIRE(encode(f, v, Overflow::saturate) == code);
        } else if (f.specials == Specials::ieee && magnitude == f.infinity()) {
          REQUIRE(std::isinf(v));
          REQUIRE(encode(f, v, Overflow::infinity) == code);
          REQUIRE(encode(f, v, Overflow::saturate) == (sign | f.max_code()));
        } else {
          REQUIRE(std::isnan(v));
          REQUIRE(std::signbit(v) == (sign != 0));
          REQUIRE(f.is_nan(encode(f, v, Overflow::saturate)));
        }
      }
    }
  }
}

TEST_CASE("midpoints go to the even code, their neighbours to the nearer one") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const FloatFormat& f : formats()) {
    CAPTURE(f.exponent_bits);
    CAPTURE(f.mantissa_bits);
    for (uint32_t magnitude = 0; magnitude < f.max_code(); ++magnitude) {
      const double middle64 = (value_of(f, magnitude) + value_of(f, magnitude + 1)) / 2;
      const float middle = static_cast<float>(middle64);
      REQUIRE(static_cast<double>(middle) == middle64);
      // Without mantissa bits every unit but zero is odd, and its ties go up.
      const uint32_t at_tie = f.mantissa_bits == 0 ? magnitude + (magnitude != 0) : magnitude + magnitude % 2;
      REQUIRE(encode(f, middle, Overflow::saturate) == at_tie);
      REQUIRE(encode(f, std::nextafter(middle, 0.0f), Overflow::saturate) == magnitude);
      REQUIRE(encode(f, std::nextafter(middle, kInf), Overflow::saturate) == magnitude + 1);
      if (f.is_signed)
        REQUIRE(encode(f, -middle, Overflow::saturate) ==
                (at_tie == 0 && f.zeros == Zeros::one ? 0 : f.sign_mask() | at_tie));
      else
        REQUIRE(encode(f, -middle, Overflow::saturate) == 0);
    }
  }
}

TEST_CASE("overflow starts half a step above the largest value") {
  for (const FloatFormat& f : formats()) {
    const double max = value_of(f, f.max_code()), step = max - value_of(f, f.max_code() - 1);
    CHECK(encode(f, static_cast<float>(max * 1.5), Overflow::saturate) == f.max_code());
    CHECK(encode(f, std::numeric_limits<float>::max(), Overflow::saturate) == f.max_code());
    if (f.specials != Specials::ieee) continue;
    const float first = static_cast<float>(max + step / 2);
    CHECK(encode(f, std::nextafter(first, 0.0f), Overflow::infinity) == f.max_code());
    CHECK(encode(f, first, Overflow::infinity) == f.infinity());
    CHECK(encode(f, first, Overflow::saturate) == f.max_code());
  }
}

TEST_CASE("values far below the smallest step become zero with their sign") {
  for (const FloatFormat& f : formats()) {
    if (f.exponent_bits == 8) continue;
    for (float tiny : {0x1p-149f, 0x1p-127f, 0x1p-100f}) {
      CHECK(encode(f, tiny, Overflow::saturate) == 0);
      CHECK(encode(f, -tiny, Overflow::saturate) == (f.zeros == Zeros::two ? f.sign_mask() : 0));
    }
  }
}

TEST_CASE("published values of the formats") {
  const FloatFormat fp4 = float_format_of(Dtype::fp4);
  constexpr std::array kFp4 = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  for (uint32_t code = 0; code < 8; ++code) CHECK(decode(fp4, code) == kFp4[code]);
  CHECK(decode(float_format_of(Dtype::fp8_e5m3), 0xFE) == 114688.0f);
  CHECK(decode(float_format_of(Dtype::fp8_e4m3fnuz), 0x01) == 0x1p-10f);
  CHECK(decode(float_format_of(Dtype::fp8_e5m2fnuz), 0x01) == 0x1p-17f);
  CHECK(decode(float_format_of(Dtype::fp8_e4m3), 0x08) == 0x1p-6f);
  CHECK(decode(float_format_of(Dtype::fp8_e4m3), 0x01) == 0x1p-9f);
  CHECK(decode(float_format_of(Dtype::fp8_e5m2), 0x7B) == 57344.0f);
  CHECK(decode(float_format_of(Dtype::float16), 0x3555) == 0.333251953125f);
  CHECK(encode(float_format_of(Dtype::bfloat16), 3.14159265f, Overflow::infinity) == 0x4049);
  CHECK(encode(float_format_of(Dtype::fp8_e4m3), std::bit_cast<float>(0xFFC00000u), Overflow::saturate) == 0xFF);
  CHECK(encode(float_format_of(Dtype::fp8_e5m2), std::bit_cast<float>(0x7F800001u), Overflow::saturate) == 0x7F);
}

#if defined(__FLT16_MAX__)
TEST_CASE("float16 agrees with the compiler's own type") {
  const FloatFormat f = float_format_of(Dtype::float16);
  uint32_t state = 1;
  for (int i = 0; i < 300000; ++i) {
    state = state * 1664525u + 1013904223u;
    const uint32_t exponent = 127 - 30 + (state >> 8) % 50;  // around and beyond the range of float16
    const float x = std::bit_cast<float>((state & 0x807FFFFFu) | exponent << 23);
    const auto half = static_cast<_Float16>(x);
    REQUIRE(encode(f, x, Overflow::infinity) == std::bit_cast<uint16_t>(half));
    REQUIRE(std::bit_cast<uint32_t>(decode(f, std::bit_cast<uint16_t>(half))) ==
            std::bit_cast<uint32_t>(static_cast<float>(half)));
  }
}
#endif

}  // namespace
}  // namespace wasmquant
