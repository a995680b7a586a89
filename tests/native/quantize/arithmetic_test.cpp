// Specs computed in the 16 bits of a weight, beside what AMD Quark 0.13 makes of the same 16 values in torch.
#include <doctest/doctest.h>

#include <vector>

#include "observers/statistics/contiguous.h"
#include "quantize/quantize.h"

using namespace wasmquant;

namespace {

const std::vector<float> kBfloat16 = {-0x1.d0p-6f, 0x1.10p-3f,  -0x1.28p-2f, 0x1.b2p-6f,  0x1.f8p-3f, -0x1.b2p-4f,
                                      0x1.32p-1f,  -0x1.2ep-1f, -0x1.3ap-6f, -0x1.d0p-4f, 0x1.78p-4f, -0x1.52p-4f,
                                      0x1.5ap-2f,  0x1.36p-4f,  0x1.b2p-3f,  0x1.3cp-3f};
const std::vector<float> kFloat16 = {-0x1.d08p-6f, 0x1.10cp-3f,  -0x1.284p-2f, 0x1.b18p-6f,  0x1.f7cp-3f, -0x1.b28p-4f,
                                     0x1.33p-1f,   -0x1.2e8p-1f, -0x1.394p-6f, -0x1.cfcp-4f, 0x1.788p-4f, -0x1.514p-4f,
                                     0x1.5ap-2f,   0x1.35cp-4f,  0x1.b3p-3f,   0x1.3b8p-3f};

QuantizationSpec arithmetic_spec_of(Dtype dtype, QScheme qscheme, Arithmetic arithmetic) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.qscheme = qscheme;
  spec.symmetric = info_of(dtype).is_signed || !info_of(dtype).is_integer;
  spec.grid.arithmetic = arithmetic;
  return spec;
}

// Two scales of eight values each, or one.
std::vector<QParams> scales_of(const QuantizationSpec& spec, const std::vector<float>& x) {
  const size_t count = spec.qscheme == QScheme::per_tensor ? 1 : 2;
  std::vector<QParams> qparams(count);
  observe_contiguous(x, x.size() / count, spec, qparams);
  return qparams;
}

}  // namespace

TEST_CASE("scales and zero points computed in bfloat16 and float16 are Quark's") {
  const auto check = [](Dtype dtype, QScheme qscheme, Arithmetic arithmetic, const std::vector<QParams>& expected) {
    const auto found = scales_of(arithmetic_spec_of(dtype, qscheme, arithmetic),
                                 arithmetic == Arithmetic::bfloat16 ? kBfloat16 : kFloat16);
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].scale == expected[i].scale);
      CHECK(found[i].zero_point == expected[i].zero_point);
    }
  };
  check(Dtype::uint4, QScheme::per_group, Arithmetic::bfloat16, {{0x1.44p-4f, 7}, {0x1.ecp-6f, 4}});
  check(Dtype::uint4, QScheme::per_group, Arithmetic::float16, {{0x1.45p-4f, 7}, {0x1.eccp-6f, 4}});
  check(Dtype::int8, QScheme::per_channel, Arithmetic::bfloat16, {{0x1.34p-8f, 0}, {0x1.5cp-9f, 0}});
  check(Dtype::int8, QScheme::per_channel, Arithmetic::float16, {{0x1.344p-8f, 0}, {0x1.5b4p-9f, 0}});
  check(Dtype::uint8, QScheme::per_tensor, Arithmetic::bfloat16, {{0x1.32p-8f, 126}});
  check(Dtype::uint8, QScheme::per_tensor, Arithmetic::float16, {{0x1.32p-8f, 127}});
  check(Dtype::fp8_e4m3, QScheme::per_channel, Arithmetic::bfloat16, {{0x1.5ep-10f, 0}, {0x1.8cp-11f, 0}});
  check(Dtype::fp8_e4m3, QScheme::per_channel, Arithmetic::float16, {{0x1.5ecp-10f, 0}, {0x1.8b8p-11f, 0}});
  check(Dtype::fp8_e4m3, QScheme::per_tensor, Arithmetic::bfloat16, {{0x1.5ep-10f, 0}});
}

TEST_CASE("fp8 quotients of bfloat16 weights are rounded to bfloat16 before they are cast, in rows and in columns") {
  // 0x1.cp-2 / 0x1.7ap-10 is 303.41: nearest fp8 288. In bfloat16 it is 304, half-way between 288 and the even 320.
  const float x[] = {0x1.cp-2f, 0x1.cp-2f}, scale = 0x1.7ap-10f;
  const QParams q[] = {{scale, 0}, {scale, 0}};
  for (const Arithmetic arithmetic : {Arithmetic::bfloat16, Arithmetic::float16, Arithmetic::float32}) {
    const float expected = (arithmetic == Arithmetic::bfloat16 ? 320.0f : 288.0f) * scale;
    for (const bool is_column : {false, true}) {
      Granularity g;
      (is_column ? g.axis : g.inner) = 2;
      const QuantizationSpec spec =
          arithmetic_spec_of(Dtype::fp8_e4m3, is_column ? QScheme::per_channel : QScheme::per_tensor, arithmetic);
      float simulated[2], read_back[2];
      uint8_t codes[2];
      fake_quantize(g, spec, q, x, 0, simulated);
      quantize(g, spec, q, kernels::Path::real, x, 0, codes);
      dequantize(g, spec, q, codes, 2, 0, read_back);
      for (int i = 0; i < 2; ++i) {
        CHECK(simulated[i] == expected);
        CHECK(read_back[i] == expected);
      }
    }
  }
}

TEST_CASE("groups of floats and fp8_e5m3 are divided in float32 for every dtype of the weight, as in Quark") {
  CHECK(quotient_arithmetic(arithmetic_spec_of(Dtype::fp4, QScheme::per_group, Arithmetic::bfloat16)) ==
        Arithmetic::float32);
  CHECK(quotient_arithmetic(arithmetic_spec_of(Dtype::fp8_e5m3, QScheme::per_tensor, Arithmetic::float16)) ==
        Arithmetic::float32);
  CHECK(quotient_arithmetic(arithmetic_spec_of(Dtype::int8, QScheme::per_tensor, Arithmetic::bfloat16)) ==
        Arithmetic::float32);
}
