#include "kernels/kernels.h"
#include "kernels/variants.h"

namespace wasmquant::kernels {
namespace {

constexpr std::array kFormats = {Dtype::fp8_e4m3, Dtype::fp8_e5m2};
constexpr std::array kScales = {1.0f, 0.37f, 0x1p-23f, 1e-30f, 3e30f};

std::vector<uint8_t> every_code() {
  std::vector<uint8_t> all(256);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
  return all;
}

TEST_CASE("fp8 kernels equal their oracles at every length and start") {
  for_each_arch_and_length([](size_t n, size_t offset) {
    const std::vector<float> x = test_values(n + offset, Content::with_specials, static_cast<uint32_t>(n));
    const std::span<const float> run = std::span(x).subspan(offset);
    std::vector<uint8_t> codes(n + offset);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 101);
    const std::span<const uint8_t> code_run = std::span<const uint8_t>(codes).subspan(offset);
    for (Dtype dtype : kFormats) {
      for (float scale : kScales) {
        INFO(std::string(info_of(dtype).name) << ", scale " << scale);
        check_same<uint8_t>(
            n, offset, [&](uint8_t* out) { quantize_fp8(run, scale, dtype, out); },
            [&](uint8_t* out) { reference::quantize_fp8(run, scale, dtype, out); });
        check_same<float>(
            n, offset, [&](float* y) { dequantize_fp8(code_run, scale, dtype, y); },
            [&](float* y) { reference::dequantize_fp8(code_run, scale, dtype, y); });
      }
    }
  });
}

TEST_CASE("every fp8 code decodes as the oracle says, and finite ones come back") {
  const std::vector<uint8_t> codes = every_code();
  for_each_arch([&] {
    for (Dtype dtype : kFormats) {
      std::vector<float> y(256), expected(256);
      dequantize_fp8(codes, 1.0f, dtype, y.data());
      reference::dequantize_fp8(codes, 1.0f, dtype, expected.data());
      REQUIRE(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)) == 0);
      std::vector<uint8_t> back(256);
      quantize_fp8(y, 1.0f, dtype, back.data());
      for (size_t i = 0; i < 256; ++i)
        if (std::isfinite(y[i])) CHECK(back[i] == codes[i]);
    }
  });
}

TEST_CASE("every midpoint between fp8 values and its neighbours encode as the oracle says") {
  const std::vector<uint8_t> codes = every_code();
  for (Dtype dtype : kFormats) {
    std::vector<float> value(256), x;
    reference::dequantize_fp8(codes, 1.0f, dtype, value.data());
    for (size_t i = 0; i + 1 < 128 && std::isfinite(value[i + 1]); ++i) {
      const float middle = (value[i] + value[i + 1]) / 2;
      for (float near : {value[i], middle}) {
        for (float v : {near, std::nextafter(near, -1e30f), std::nextafter(near, 1e30f)}) {
          x.push_back(v);
          x.push_back(-v);
        }
      }
    }
    std::vector<uint8_t> expected(x.size());
    reference::quantize_fp8(x, 1.0f, dtype, expected.data());
    for_each_arch([&] {
      std::vector<uint8_t> actual(x.size());
      quantize_fp8(x, 1.0f, dtype, actual.data());
      REQUIRE(actual == expected);
    });
  }
}

TEST_CASE("fp8 casts worked by hand") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0x1p-10f, 0x1.8p-9f, 17, 19, 464, 1e9f, kInf, -kInf, -0.0f, float_of(0xFFC00000), 448};
  const std::vector<uint8_t> e4m3 = {0x00, 0x02, 0x58, 0x5A, 0x7E, 0x7E, 0x7E, 0xFE, 0x80, 0xFF, 0x7E};
  const std::vector<float> wide = {57344, 61440, 1e9f, kInf, -kInf, -0.0f, float_of(0x7FC00000), 0x1p-17f, 0x1.8p-16f};
  const std::vector<uint8_t> e5m2 = {0x7B, 0x7B, 0x7B, 0x7B, 0xFB, 0x80, 0x7F, 0x00, 0x02};
  for_each_arch([&] {
    std::vector<uint8_t> codes(x.size());
    quantize_fp8(x, 1.0f, Dtype::fp8_e4m3, codes.data());
    CHECK(codes == e4m3);
    codes.resize(wide.size());
    quantize_fp8(wide, 1.0f, Dtype::fp8_e5m2, codes.data());
    CHECK(codes == e5m2);
  });
}

}  // namespace
}  // namespace wasmquant::kernels
