#include "quantize/bias.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using namespace wasmquant;

TEST_CASE("biases are codes of input scale times weight scale, and saturate") {
  const float bias[] = {0.5f, -0.375f, 100.0f, -1e9f};
  const QParams weight{0.5f, 0};
  int32_t codes[4];
  float scales[4];
  REQUIRE(quantize_bias(bias, 0.25f, {&weight, 1}, 8, codes, scales));
  CHECK(scales[0] == 0.125f);
  CHECK(codes[0] == 4);
  CHECK(codes[1] == -3);
  CHECK(codes[2] == 127);
  CHECK(codes[3] == -128);
  REQUIRE(quantize_bias(bias, 0.25f, {&weight, 1}, 32, codes, scales));
  CHECK(codes[2] == 800);
  CHECK(codes[3] == std::numeric_limits<int32_t>::min());
  const QParams channels[] = {{0.5f, 0}, {1.0f, 0}, {1.0f, 0}, {1.0f, 0}};
  REQUIRE(quantize_bias(bias, 0.25f, channels, 16, codes, scales));
  CHECK(codes[0] == 4);
  CHECK(codes[1] == -2);  // -1.5, to even
}

TEST_CASE("biases that cannot be") {
  const float bias[] = {0.5f, std::numeric_limits<float>::infinity()};
  const QParams weight[] = {{0.5f, 0}, {0.5f, 0}, {0.5f, 0}};
  int32_t codes[2];
  float scales[2];
  const auto code_of = [](const Status& status) { return status ? ErrorCode::json_invalid : status.error().code; };
  CHECK(code_of(quantize_bias(bias, 1, {weight, 3}, 8, codes, scales)) == ErrorCode::shape_mismatch);
  CHECK(code_of(quantize_bias(bias, 1, {weight, 1}, 12, codes, scales)) == ErrorCode::argument_invalid);
  CHECK(code_of(quantize_bias(bias, 1, {weight, 1}, 8, codes, scales)) == ErrorCode::value_not_finite);
}
