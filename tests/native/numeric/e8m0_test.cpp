#include "numeric/e8m0.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace wasmquant {
namespace {

TEST_CASE("e8m0: every byte is a power of two and round-trips") {
  for (int byte = 0; byte < 255; ++byte) {
    const float value = decode_e8m0(static_cast<uint8_t>(byte));
    CHECK(value == std::ldexp(1.0f, byte - 127));
    CHECK(encode_e8m0(value) == byte);
    CHECK(export_e8m0(value) == (byte == 0 ? 1 : byte));
  }
  CHECK(std::isnan(decode_e8m0(kE8m0NaN)));
  CHECK(encode_e8m0(std::numeric_limits<float>::quiet_NaN()) == kE8m0NaN);
  CHECK(encode_e8m0(std::numeric_limits<float>::max()) == 254);
}

TEST_CASE("e8m0: rounding switches at 1.5, the exporter's at the square root of two") {
  for (int byte = 1; byte < 254; ++byte) {
    const float value = decode_e8m0(static_cast<uint8_t>(byte));
    CHECK(encode_e8m0(value * 1.5f) == byte + 1);
    CHECK(encode_e8m0(std::nextafter(value * 1.5f, 0.0f)) == byte);
    CHECK(export_e8m0(value * 1.41421354f) == byte);
    CHECK(export_e8m0(value * 1.41421366f) == byte + 1);
  }
}

}  // namespace
}  // namespace wasmquant
