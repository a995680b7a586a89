// Kernels of small floats on every instruction set, against the oracles.
#include "kernels/kernels.h"
#include "kernels/variants.h"

namespace wasmquant::kernels {
namespace {

constexpr std::array kScales = {1.0f, 0.37f, 0x1p-23f, 1e-30f, 3e30f, 0x1p-127f};
constexpr size_t kQuantizeFloatOneRun = size_t{1} << 20;

struct Named {
  std::string name;
  FloatFormat format;
};

/// Every float dtype that is not a plain cast, and minifloats at the ends of the family.
std::vector<Named> quantize_float_formats() {
  std::vector<Named> all;
  for (const DtypeInfo& info : kDtypes)
    if (info.kind == DtypeKind::floating && info.bits != 0 && info.bits <= 8)
      all.push_back({std::string(info.name), float_format_of(info.dtype)});
  for (const auto& [e, m] : {std::pair{1, 0}, {1, 6}, {2, 0}, {7, 0}, {3, 4}, {4, 3}})
    all.push_back({"e" + std::to_string(e) + "m" + std::to_string(m), plain_minifloat(e, m)});
  return all;
}

TEST_CASE("float kernels equal their oracles at every length and start") {
  const std::vector<Named> all = quantize_float_formats();
  for_each_arch_and_length([&](size_t n, size_t offset) {
    const std::vector<float> x = test_values(n + offset, Content::with_specials, static_cast<uint32_t>(n));
    const std::span<const float> run = std::span(x).subspan(offset);
    std::vector<uint8_t> codes(n + offset);
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 101);
    const std::span<const uint8_t> code_run = std::span<const uint8_t>(codes).subspan(offset);
    for (const auto& [name, format] : all) {
      const float scale = kScales[n % kScales.size()];
      INFO(name << ", scale " << scale);
      check_same<uint8_t>(
          n, offset, [&](uint8_t* out) { quantize_float(run, &scale, kQuantizeFloatOneRun, format, out); },
          [&](uint8_t* out) { reference::quantize_float(run, &scale, kQuantizeFloatOneRun, format, out); });
      for (const float factor : {scale, -scale})  // checkpoints of others may hold negative scales
        check_same<float>(
            n, offset, [&](float* y) { dequantize_float(code_run, &factor, kQuantizeFloatOneRun, format, y); },
            [&](float* y) { reference::dequantize_float(code_run, &factor, kQuantizeFloatOneRun, format, y); });
      check_same<float>(
          n, offset, [&](float* y) { fake_quantize_float(run, &scale, kQuantizeFloatOneRun, format, y); },
          [&](float* y) { reference::fake_quantize_float(run, &scale, kQuantizeFloatOneRun, format, y); });
    }
  });
}

TEST_CASE("runs: each uses its own scale, the last may be shorter") {
  const std::vector<Named> all = quantize_float_formats();
  for_each_arch([&] {
    for (const size_t run : {1, 8, 16, 32, 33, 64}) {
      const size_t n = run * (kScales.size() - 1) + (run + 1) / 2;
      const std::vector<float> x = test_values(n, Content::with_specials, static_cast<uint32_t>(run));
      for (const auto& [name, format] : all) {
        INFO(name << ", run " << run);
        check_same<uint8_t>(
            n, 1, [&](uint8_t* out) { quantize_float(x, kScales.data(), run, format, out); },
            [&](uint8_t* out) { reference::quantize_float(x, kScales.data(), run, format, out); });
        check_same<float>(
            n, 1, [&](float* y) { fake_quantize_float(x, kScales.data(), run, format, y); },
            [&](float* y) { reference::fake_quantize_float(x, kScales.data(), run, format, y); });
      }
    }
  });
}

TEST_CASE("fake_quantize_float serves every minifloat, e1 to e7 and m0 to m10") {
  const std::vector<float> x = test_values(300, Content::with_specials, 9);
  for_each_arch([&] {
    for (int e = 1; e <= 7; ++e) {
      for (int m = 0; m <= 10; ++m) {
        INFO("e" << e << "m" << m);
        const float scale = 0.37f;
        check_same<float>(
            x.size(), 0,
            [&](float* y) { fake_quantize_float(x, &scale, kQuantizeFloatOneRun, plain_minifloat(e, m), y); },
            [&](float* y) {
              reference::fake_quantize_float(x, &scale, kQuantizeFloatOneRun, plain_minifloat(e, m), y);
            });
      }
    }
  });
}

TEST_CASE("every code decodes as the oracle does, and numbers round-trip") {
  const float one = 1.0f;
  for_each_arch([&] {
    for (const auto& [name, format] : quantize_float_formats()) {
      CAPTURE(name);
      std::vector<uint8_t> codes(size_t{1} << format.bits());
      for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
      std::vector<float> y(codes.size()), expected(codes.size());
      dequantize_float(codes, &one, kQuantizeFloatOneRun, format, y.data());
      reference::dequantize_float(codes, &one, kQuantizeFloatOneRun, format, expected.data());
      REQUIRE(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)) == 0);
      std::vector<uint8_t> back(codes.size());
      quantize_float(y, &one, kQuantizeFloatOneRun, format, back.data());
      for (size_t i = 0; i < codes.size(); ++i)
        if (std::isfinite(y[i]) && (y[i] != 0 || format.zeros == Zeros::two)) CHECK(back[i] == codes[i]);
    }
  });
}

TEST_CASE("every midpoint between values and its neighbours encode as the oracle does") {
  const float one = 1.0f;
  for (const auto& [name, format] : quantize_float_formats()) {
    CAPTURE(name);
    std::vector<float> x;
    for (uint32_t code = 0; code < format.max_code(); ++code) {
      const float value = decode(format, code), middle = (value + decode(format, code + 1)) / 2;
      for (float near : {value, middle}) {
        for (float v : {near, std::nextafter(near, -1e38f), std::nextafter(near, 1e38f)}) {
          x.push_back(v);
          x.push_back(-v);
        }
      }
    }
    std::vector<uint8_t> expected(x.size());
    reference::quantize_float(x, &one, kQuantizeFloatOneRun, format, expected.data());
    for_each_arch([&] {
      std::vector<uint8_t> actual(x.size());
      quantize_float(x, &one, kQuantizeFloatOneRun, format, actual.data());
      REQUIRE(actual == expected);
    });
  }
}

TEST_CASE("casts worked by hand") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float one = 1.0f;
  const auto check = [&](Dtype dtype, const std::vector<float>& x, const std::vector<uint8_t>& expected) {
    CAPTURE(info_of(dtype).name);
    for_each_arch([&] {
      std::vector<uint8_t> codes(x.size());
      quantize_float(x, &one, kQuantizeFloatOneRun, float_format_of(dtype), codes.data());
      CHECK(codes == expected);
    });
  };
  const float nan = float_of(0x7FC00000), negative_nan = float_of(0xFFC00000);
  check(Dtype::fp8_e4m3, {0x1p-10f, 0x1.8p-9f, 17, 19, 464, 1e9f, kInf, -kInf, -0.0f, negative_nan, 448},
        {0x00, 0x02, 0x58, 0x5A, 0x7E, 0x7E, 0x7E, 0xFE, 0x80, 0xFF, 0x7E});
  check(Dtype::fp8_e5m2, {57344, 61440, 1e9f, kInf, -kInf, -0.0f, nan, 0x1p-17f, 0x1.8p-16f},
        {0x7B, 0x7B, 0x7B, 0x7B, 0xFB, 0x80, 0x7F, 0x00, 0x02});
  check(Dtype::fp8_e5m3, {114688, 1e9f, -3, kInf, nan, 0x1p-17f}, {0xFE, 0xFE, 0x00, 0xFE, 0xFF, 0x01});
  check(Dtype::fp8_e4m3fnuz, {240, 1e9f, -kInf, -0.0f, nan, negative_nan, 1, -0x1p-12f},
        {0x7F, 0x7F, 0xFF, 0x00, 0x80, 0x80, 0x40, 0x00});
  check(Dtype::fp4, {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5, -0.25f, -5, 100, -kInf, nan, -0.0f},
        {0, 2, 2, 4, 4, 6, 6, 0, 0xE, 7, 0xF, 0, 0});
  check(Dtype::fp6_e2m3, {0.0625f, 0.1875f, 1.0625f, 7.25f, 7.75f}, {0, 2, 8, 0x1E, 0x1F});
  check(Dtype::fp6_e3m2, {0.03125f, 0.09375f, 26, 30}, {0, 2, 0x1E, 0x1F});
}

TEST_CASE("formats without NaN let NaN and infinities through the fake path") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float scale = 0.5f;
  const std::vector<float> x(20, -kInf);
  for_each_arch([&] {
    std::vector<float> y(x.size());
    fake_quantize_float(x, &scale, kQuantizeFloatOneRun, float_format_of(Dtype::fp4), y.data());
    CHECK(y == x);
    fake_quantize_float(x, &scale, kQuantizeFloatOneRun, float_format_of(Dtype::fp8_e4m3), y.data());
    CHECK(y == std::vector<float>(x.size(), -224.0f));
  });
}

}  // namespace
}  // namespace wasmquant::kernels
