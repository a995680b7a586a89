#include "pipeline/task/to_float32.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "numeric/minifloat.h"
#include "tools/scaled_floats/scaled_floats.h"

using namespace wasmquant;

namespace {

// By the definition of the OCP formats: sign, exponent, mantissa.
double value_of(uint32_t code, int exponent_bits, int mantissa_bits, int bias) {
  const uint32_t exponent = code >> mantissa_bits & ((1u << exponent_bits) - 1),
                 mantissa = code & ((1u << mantissa_bits) - 1);
  const double sign = code >> (exponent_bits + mantissa_bits) & 1 ? -1 : 1, step = std::ldexp(1.0, -mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(mantissa * step, 1 - bias)
                               : std::ldexp(1 + mantissa * step, static_cast<int>(exponent) - bias));
}

}  // namespace

TEST_CASE("to_float32: all 256 codes of the 8-bit floats") {
  std::vector<uint8_t> codes(256);
  for (size_t i = 0; i < 256; ++i) codes[i] = static_cast<uint8_t>(i);
  std::vector<float> x(256);
  to_float32(StorageDtype::F8_E4M3, codes.data(), 256, x.data());
  for (uint32_t i = 0; i < 256; ++i) {
    if ((i & 0x7F) == 0x7F)
      CHECK(std::isnan(x[i]));
    else
      CHECK(x[i] == value_of(i, 4, 3, 7));
  }
  to_float32(StorageDtype::F8_E5M2, codes.data(), 256, x.data());
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t magnitude = i & 0x7F;
    if (magnitude > 0x7C)
      CHECK(std::isnan(x[i]));
    else if (magnitude == 0x7C)
      CHECK(std::isinf(x[i]));
    else
      CHECK(x[i] == value_of(i, 5, 2, 15));
  }
  for (const auto& [dtype, exponent_bits, mantissa_bits] :
       {std::tuple{StorageDtype::F8_E4M3FNUZ, 4, 3}, std::tuple{StorageDtype::F8_E5M2FNUZ, 5, 2}}) {
    to_float32(dtype, codes.data(), 256, x.data());
    for (uint32_t i = 0; i < 256; ++i) {
      if (i == 0x80)
        CHECK(std::isnan(x[i]));
      else
        CHECK(x[i] == value_of(i, exponent_bits, mantissa_bits, (1 << (exponent_bits - 1))));
    }
  }
}

TEST_CASE("to_float32: F4, two to a byte, the first in the low nibble") {
  constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const auto in = static_cast<uint8_t>(byte);
    float x[2];
    to_float32(StorageDtype::F4, &in, 2, x);
    for (uint32_t k = 0; k < 2; ++k) {
      const uint32_t code = byte >> (4 * k) & 15;
      CHECK(x[k] == (code & 8 ? -kValues[code & 7] : kValues[code & 7]));
    }
  }
}

TEST_CASE("small floats: the dtypes and shapes that hold values") {
  const uint64_t even[] = {3, 4}, odd[] = {4, 3};
  CHECK(is_quantizable(StorageDtype::F8_E4M3, odd));
  CHECK(is_quantizable(StorageDtype::F4, even));
  CHECK_FALSE(is_quantizable(StorageDtype::F4, odd));
  CHECK_FALSE(is_quantizable(StorageDtype::F4, {}));
  CHECK_FALSE(is_quantizable(StorageDtype::F8_E8M0, even));
  CHECK_FALSE(is_quantizable(StorageDtype::F6_E2M3, even));
}

TEST_CASE("scaled floats: the scheme follows from the scale's shape") {
  const auto spec = [](std::vector<uint64_t> shape, std::vector<uint64_t> scale, StorageDtype dtype = StorageDtype::F32,
                       uint64_t rows = 0, uint64_t columns = 0) {
    const uint64_t block[2] = {rows, columns};
    return scaled_floats_spec(Dtype::fp8_e4m3, shape, dtype, scale, block);
  };
  CHECK(spec({8, 16}, {})->qscheme == QScheme::per_tensor);
  CHECK(spec({8, 16}, {1})->qscheme == QScheme::per_tensor);
  CHECK(spec({8, 16}, {8})->qscheme == QScheme::per_channel);
  CHECK(spec({8, 16}, {8, 1})->qscheme == QScheme::per_channel);
  CHECK(spec({8, 64}, {8, 2}, StorageDtype::F8_E8M0)->group_size == 32);
  CHECK(spec({8, 64}, {8, 2}, StorageDtype::U8)->group_size == 32);
  const auto ragged = spec({576, 7168}, {5, 56});  // DeepSeek-V3's kv_a_proj
  CHECK(ragged->qscheme == QScheme::per_block);
  CHECK(ragged->block_rows == 128);
  CHECK(ragged->block_columns == 128);
  CHECK(spec({64, 64}, {4, 2}, StorageDtype::F32, 16, 32)->block_rows == 16);
  CHECK_FALSE(spec({64, 64}, {3, 5}));
  CHECK_FALSE(spec({8, 16}, {16}));
  CHECK_FALSE(spec({8, 16}, {0, 4}));
  CHECK_FALSE(spec({8, 64}, {8, 4}, StorageDtype::U8));
  CHECK_FALSE(spec({8, 64}, {8, 4}, StorageDtype::F8_E4M3));
  CHECK_FALSE(spec({8, 64}, {8, 4}, StorageDtype::I32));
}
