#include <tuple>

#include "kernels/kernels.h"
#include "kernels/variants.h"

namespace wasmquant::kernels {
namespace {

const std::vector<BlockFloatFormat>& block_float_formats() {
  static const std::vector<BlockFloatFormat> all = {block_float_of(Dtype::mx6),     block_float_of(Dtype::mx6, 32),
                                                    block_float_of(Dtype::mx9),     block_float_of(Dtype::mx9, 32),
                                                    block_float_of(Dtype::mx9, 10), block_float_of(Dtype::bfp16)};
  return all;
}

struct Blocks {
  std::vector<uint8_t> exponents, shifts;
  std::vector<int8_t> codes;
  Blocks(size_t n, const BlockFloatFormat& f) : exponents(n / f.block + 1), shifts(n / 2 + 1), codes(n) {}
  bool operator==(const Blocks&) const = default;
};

TEST_CASE("block floats equal their oracles at every length and start") {
  for_each_arch_and_length([](size_t n, size_t offset) {
    for (const Content content : {Content::finite, Content::with_specials}) {
      const std::vector<float> x = test_values(n + offset, content, static_cast<uint32_t>(n));
      const std::span<const float> row = std::span(x).subspan(offset);
      for (const BlockFloatFormat& format : block_float_formats()) {
        INFO("block " << format.block << ", code bits " << format.code_bits);
        Blocks actual(n, format), expected(n, format);
        quantize_block_float(row, format, actual.exponents.data(), actual.shifts.data(), actual.codes.data());
        reference::quantize_block_float(row, format, expected.exponents.data(), expected.shifts.data(),
                                        expected.codes.data());
        REQUIRE(actual == expected);
        check_same<float>(
            n, offset,
            [&](float* y) {
              dequantize_block_float(actual.codes, format, actual.exponents.data(), actual.shifts.data(), y);
            },
            [&](float* y) {
              reference::dequantize_block_float(actual.codes, format, actual.exponents.data(), actual.shifts.data(), y);
            });
      }
    }
  });
}

TEST_CASE("mx6 worked by hand: pairs below the block's exponent get half the step") {
  const std::vector<float> x = {3.7f, 1, 1.9f, 0.3f, 1.97f, 0.1f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const BlockFloatFormat format = block_float_of(Dtype::mx6);
  for_each_arch([&] {
    Blocks b(16, format);
    quantize_block_float(x, format, b.exponents.data(), b.shifts.data(), b.codes.data());
    std::vector<float> y(16);
    dequantize_block_float(b.codes, format, b.exponents.data(), b.shifts.data(), y.data());
    CHECK(b.exponents[0] == 128);
    CHECK(std::vector<int8_t>(b.codes.begin(), b.codes.begin() + 6) == std::vector<int8_t>{15, 4, 15, 2, 15, 1});
    CHECK(std::vector<float>(y.begin(), y.begin() + 6) == std::vector<float>{3.75f, 1, 1.875f, 0.25f, 1.875f, 0.125f});
  });
}

TEST_CASE("bfp16 worked by hand: +128 bumps the exponent, -128 does not") {
  const BlockFloatFormat format = block_float_of(Dtype::bfp16);
  for (const auto& [x, code, value] : {std::tuple{1.999f, 64, 2.0f}, std::tuple{-1.999f, -128, -2.0f}}) {
    const std::vector<float> block = {x, 0, 0, 0, 0, 0, 0, 0};
    Blocks b(8, format);
    std::vector<float> y(8);
    quantize_block_float(block, format, b.exponents.data(), nullptr, b.codes.data());
    dequantize_block_float(b.codes, format, b.exponents.data(), nullptr, y.data());
    CHECK(b.codes[0] == code);
    CHECK(y[0] == value);
  }
}

TEST_CASE("blocks of zeros, subnormals and non-finite values") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float v : {0.0f, -0.0f, 0x1p-140f, kInf, -kInf, float_of(0x7FC00001)}) {
    CAPTURE(v);
    for (const BlockFloatFormat& format : block_float_formats()) {
      const std::vector<float> x(32, v);
      Blocks b(32, format);
      std::vector<float> y(32);
      quantize_block_float(x, format, b.exponents.data(), b.shifts.data(), b.codes.data());
      dequantize_block_float(b.codes, format, b.exponents.data(), b.shifts.data(), y.data());
      for (const float value : y) CHECK(value == 0.0f);
    }
  }
}

}  // namespace
}  // namespace wasmquant::kernels
