#include "numeric/half.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "numeric/minifloat.h"

namespace wasmquant {
namespace {

constexpr FloatFormat kHalf = float_format_of(Dtype::float16);

TEST_CASE("every float16 widens as defined, and round-trips") {
  for (uint32_t code = 0; code < 65536; ++code) {
    const float value = from_half(static_cast<uint16_t>(code));
    CAPTURE(code);
    if (kHalf.is_nan(code)) {
      REQUIRE(std::isnan(value));
      REQUIRE(half_of(value) == 0xFE00);
    } else {
      REQUIRE(std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(decode(kHalf, code)));
      REQUIRE(half_of(value) == code);
    }
  }
}

TEST_CASE("narrowing is nearest even around every float16") {
  for (uint32_t code = 0; code < 0x7C00; ++code) {
    const float value = from_half(static_cast<uint16_t>(code));
    const float next = code == 0x7BFF ? 65536.0f : from_half(static_cast<uint16_t>(code + 1));
    const float middle = value + (next - value) / 2;
    for (const float v :
         {value, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, next), std::nextafter(value, next)}) {
      CAPTURE(v);
      REQUIRE(half_of(v) == encode(kHalf, v, Overflow::infinity));
      REQUIRE(half_of(-v) == encode(kHalf, -v, Overflow::infinity));
    }
  }
  CHECK(half_of(1e-30f) == 0);
  CHECK(half_of(-std::numeric_limits<float>::denorm_min()) == 0x8000);
  CHECK(half_of(std::numeric_limits<float>::max()) == 0x7C00);
  CHECK(half_of(-std::numeric_limits<float>::infinity()) == 0xFC00);
}

}  // namespace
}  // namespace wasmquant
