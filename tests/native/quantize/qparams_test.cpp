// Scales and zero points against values worked out by hand (AMD Quark's formulas).
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "numeric/minifloat.h"
#include "quantize/qparams.h"

using namespace wasmquant;

namespace {

QuantizationSpec qparams_spec_of(Dtype dtype, bool symmetric) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.symmetric = symmetric;
  return spec;
}

constexpr float kQparamsInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("symmetric integers: the larger magnitude over half the number of steps") {
  CHECK(qparams_of(-1.0f, 2.0f, qparams_spec_of(Dtype::int8, true)).scale == 2.0f / 127.5f);
  CHECK(qparams_of(-3.0f, 2.0f, qparams_spec_of(Dtype::int4, true)).scale == 3.0f / 7.5f);
  CHECK(qparams_of(1.0f, 2.0f, qparams_spec_of(Dtype::uint8, true)).scale == 2.0f / 127.5f);
  CHECK(qparams_of(-3.0f, 2.0f, qparams_spec_of(Dtype::int2, true)).scale == 2.0f);
  CHECK(qparams_of(-3.0f, 2.0f, qparams_spec_of(Dtype::int16, true)).scale == 3.0f / 32767.5f);
  CHECK(qparams_of(-3.0f, 2.0f, qparams_spec_of(Dtype::int8, true)).zero_point == 0.0f);
}

TEST_CASE("asymmetric integers: zero is in the range and has a code") {
  const QParams q = qparams_of(-1.0f, 3.0f, qparams_spec_of(Dtype::uint8, false));
  CHECK(q.scale == 4.0f / 255.0f);
  CHECK(q.zero_point == 64.0f);  // 63.75
  CHECK(qparams_of(-1.0f, 3.0f, qparams_spec_of(Dtype::int8, false)).zero_point == -64.0f);
  const QParams positive = qparams_of(1.0f, 3.0f, qparams_spec_of(Dtype::uint4, false));
  CHECK(positive.scale == 3.0f / 15.0f);
  CHECK(positive.zero_point == 0.0f);
  const QParams negative = qparams_of(-3.0f, -1.0f, qparams_spec_of(Dtype::uint4, false));
  CHECK(negative.scale == 3.0f / 15.0f);
  CHECK(negative.zero_point == 15.0f);
}

TEST_CASE("float32 zero points: the range is used unchanged") {
  QuantizationSpec spec = qparams_spec_of(Dtype::uint4, false);
  spec.zero_point_type = ZeroPointType::float32;
  const QParams q = qparams_of(1.0f, 4.0f, spec);
  CHECK(q.scale == 0.2f);
  CHECK(q.zero_point == -1.0f / 0.2f);
  const QParams constant = qparams_of(1.75f, 1.75f, spec);
  CHECK(constant.scale == 1.0f);
  CHECK(constant.zero_point == -1.75f);
  spec.symmetric = true;
  CHECK(qparams_of(1.0f, 4.0f, spec).zero_point == 0.0f);
}

// Brevitas' groupwise quantizers: their scales with power-of-two thresholds, and without a floor.
TEST_CASE("float32 zero points: the grid's keys determine the scale") {
  QuantizationSpec spec = qparams_spec_of(Dtype::uint4, false);
  spec.zero_point_type = ZeroPointType::float32;
  spec.grid.divisor = ScaleDivisor::code_count;
  spec.grid.threshold_rounding = ThresholdRounding::ceil;
  spec.grid.zero_point_order = ZeroPointOrder::before_rounding;
  spec.grid.divides = true;
  spec.grid.max_includes_zero = false;
  spec.grid.smallest_scale = 0;
  spec.grid.smallest_threshold = 1e-4f;
  const QParams powers = qparams_of(-1.0f, 1.25f, spec);  // 2.25 becomes 4, over 16 codes
  CHECK(powers.scale == 0.25f);
  CHECK(powers.zero_point == 4.0f);

  QuantizationSpec small = qparams_spec_of(Dtype::uint6, false);
  small.zero_point_type = ZeroPointType::float32;
  small.grid.smallest_scale = 0;
  const QParams tiny = qparams_of(-3e-6f, 3.5e-6f, small);
  CHECK(tiny.scale == (3.5e-6f + 3e-6f) / 63.0f);
  CHECK(tiny.zero_point == 3e-6f / tiny.scale);
}

TEST_CASE("fp8: largest magnitude over the largest value") {
  CHECK(qparams_of(-7.0f, 3.0f, qparams_spec_of(Dtype::fp8_e4m3, true)).scale == 7.0f / 448.0f);
  CHECK(qparams_of(-7.0f, 3.0f, qparams_spec_of(Dtype::fp8_e5m2, true)).scale == 7.0f / 57344.0f);
  CHECK(qparams_of(1e-30f, 1e-30f, qparams_spec_of(Dtype::fp8_e4m3, true)).scale == 1e-30f / 448.0f);
}

TEST_CASE("zeros, no data, and ranges beyond float32") {
  for (const Dtype dtype : {Dtype::int8, Dtype::uint4, Dtype::fp8_e4m3})
    for (const bool symmetric : {false, true}) {
      const QParams zeros = qparams_of(0.0f, 0.0f, qparams_spec_of(dtype, symmetric));
      CHECK(zeros.scale == 0x1p-23f);
      CHECK(zeros.zero_point == (dtype == Dtype::int8 && !symmetric ? -128.0f : 0.0f));
      const QParams nothing = qparams_of(kQparamsInfinity, -kQparamsInfinity, qparams_spec_of(dtype, symmetric));
      CHECK(nothing.scale == 1.0f);
      CHECK(nothing.zero_point == 0.0f);
      const float most = std::numeric_limits<float>::max();
      const QParams widest = qparams_of(-most, most, qparams_spec_of(dtype, symmetric));
      CHECK(std::isfinite(widest.scale));
      CHECK(std::isfinite(widest.zero_point));
    }
  static_assert(kScaleEpsilon == 0x1p-23f);
}

TEST_CASE("scale_type: the scale is rounded for storage, the zero point comes from the unrounded scale") {
  QuantizationSpec spec = qparams_spec_of(Dtype::int8, true);
  spec.scale_type = ScaleType::bfloat16;
  CHECK(qparams_of(0.0f, 127.5f * 1.00390625f, spec).scale == 1.0f);  // 1 + 2^-8: a tie, to even
  CHECK(qparams_of(0.0f, 127.5f * 1.01171875f, spec).scale == 1.015625f);
  spec.scale_type = ScaleType::float16;
  CHECK(qparams_of(0.0f, 127.5f * (1 + 0x1p-10f), spec).scale == 1 + 0x1p-10f);
  CHECK(qparams_of(0.0f, 1e30f, spec).scale == 65504.0f);
  CHECK(qparams_of(0.0f, 0.0f, spec).scale == 0x1p-23f);
  for (const ScaleType same : {ScaleType::float_, ScaleType::float32, ScaleType::pof2}) {
    spec.scale_type = same;
    CHECK(qparams_of(0.0f, 1.0f, spec).scale == 1.0f / 127.5f);
  }
  QuantizationSpec fp8 = qparams_spec_of(Dtype::fp8_e4m3, true);
  fp8.scale_type = ScaleType::float16;
  CHECK(qparams_of(0.0f, 1e-9f, fp8).scale == 0x1p-23f);  // would be 0 in float16
  QuantizationSpec asymmetric = qparams_spec_of(Dtype::uint8, false);
  const float zero_point = qparams_of(-1.234f, 0.777f, asymmetric).zero_point;
  asymmetric.scale_type = ScaleType::bfloat16;
  CHECK(qparams_of(-1.234f, 0.777f, asymmetric).zero_point == zero_point);
}

TEST_CASE("scales of 16 bits are the nearest values of their type, finite and above zero") {
  for (const auto& [type, dtype] :
       {std::pair{ScaleType::float16, Dtype::float16}, {ScaleType::bfloat16, Dtype::bfloat16}}) {
    QuantizationSpec spec = qparams_spec_of(Dtype::fp8_e4m3, true);
    spec.scale_type = type;
    const ScaleRule rule(spec);
    const FloatFormat format = float_format_of(dtype);
    bool agrees = true;
    // From 2^-14 on, the smallest normal float16; below it scales round up.
    for (uint32_t bits = 0x38800000; bits < 0x7F800000; bits += 1021) {
      const auto scale = std::bit_cast<float>(bits);
      agrees &= rule.stored(scale) == decode(format, encode(format, scale, Overflow::saturate));
    }
    CHECK(agrees);
    CHECK(rule.stored(0.0f) == kScaleEpsilon);
    CHECK(rule.stored(std::numeric_limits<float>::max()) == static_cast<float>(format.max_finite()));
  }
}

TEST_CASE("AffineRule: range of the dtype and a reciprocal that stays finite") {
  const kernels::Affine a = AffineRule(qparams_spec_of(Dtype::uint4, false))({0.3f, 7.0f});
  CHECK(a.scale == 0.3f);
  CHECK(a.inverse == 1.0f / 0.3f);
  CHECK(a.zero_point == 7.0f);
  CHECK(a.quant_min == 0.0f);
  CHECK(a.quant_max == 15.0f);
  CHECK(AffineRule(qparams_spec_of(Dtype::int8, true))({0x1p-140f, 0.0f}).inverse == 0x1p126f);
}

TEST_CASE("e8m0 block scales: even, floor and ceil") {
  QuantizationSpec spec = qparams_spec_of(Dtype::fp4, true);
  spec.scale_format = ScaleFormat::e8m0;
  const auto scale = [&](float amax, ScaleCalculationMode mode) {
    spec.scale_calculation_mode = mode;
    return qparams_of(-amax, amax, spec).scale;
  };
  using Mode = ScaleCalculationMode;
  CHECK(scale(6, Mode::even) == 1);
  CHECK(scale(7, Mode::even) == 2);  // 1.75 * 4 would round up
  CHECK(scale(6.9999995f, Mode::even) == 1);
  CHECK(scale(7, Mode::floor) == 1);
  CHECK(scale(7, Mode::ceil) == 2);
  CHECK(scale(4, Mode::ceil) == 1);
  CHECK(scale(0, Mode::even) == 0x1p-127f);
  CHECK(scale(-0.0f, Mode::even) == 0x1p-127f);
  CHECK(scale(0, Mode::floor) == kScaleEpsilon);
  CHECK(scale(std::numeric_limits<float>::max(), Mode::even) == 0x1p126f);
}

TEST_CASE("MX integers: value = code * scale / 64, codes -127..127") {
  QuantizationSpec spec = qparams_spec_of(Dtype::int8, true);
  spec.scale_format = ScaleFormat::e8m0;
  const QParams q = qparams_of(-1.5f, 1.0f, spec);
  CHECK(q.scale == 1.0f);
  const kernels::Affine a = AffineRule(spec)(q);
  CHECK(a.scale == 1.0f / 64);
  CHECK(a.quant_min == -127.0f);
  CHECK(AffineRule(spec)({0x1p-127f, 0}).scale == 0x1p-126f);
}

TEST_CASE("NVFP4: fp8 block scales under one float32 scale") {
  QuantizationSpec spec = qparams_spec_of(Dtype::fp4, true);
  spec.scale_format = ScaleFormat::e4m3;
  const float min[] = {-1.0f, 0.0f, -2688.0f}, max[] = {0.5f, 0.0f, 6.0f};
  QParams q[3];
  qparams_of_ranges(min, max, spec, q);
  CHECK(second_scale_of(2688.0f, spec) == 1.0f);
  CHECK(q[2].scale == 448.0f);
  CHECK(q[0].scale == 0.171875f);  // 1/6 as fp8_e4m3
  CHECK(q[1].scale == 1.0f);       // a block of zeros
  CHECK(second_scale_of(0.0f, spec) == kScaleEpsilon);
}

TEST_CASE("scale types: what is stored is positive") {
  QuantizationSpec spec = qparams_spec_of(Dtype::int8, true);
  spec.scale_type = ScaleType::float8_e8m0fnu;
  CHECK(qparams_of(-127.5f, 0, spec).scale == 1.0f);
  CHECK(qparams_of(-127.5f * 1.5f, 0, spec).scale == 2.0f);
  CHECK(qparams_of(-127.5f * 1.25f, 0, spec).scale == 1.0f);
  spec.scale_type = ScaleType::float8_e5m3;
  CHECK(qparams_of(-127.5f * 1.0625f, 0, spec).scale == 1.0f);
  CHECK(qparams_of(-1e-20f, 0, spec).scale == 0x1p-17f);
  CHECK(qparams_of(-3e38f, 0, spec).scale == 114688.0f);
}

TEST_CASE("int32 and uint16 ranges") {
  CHECK(qparams_of(-1.0f, 1.0f, qparams_spec_of(Dtype::int32, true)).scale == kScaleEpsilon);
  CHECK(qparams_of(-2147483648.0f, 1.0f, qparams_spec_of(Dtype::int32, true)).scale == 1.0f);
  CHECK(qparams_of(0.0f, 65535.0f, qparams_spec_of(Dtype::uint16, false)).scale == 1.0f);
}
