// Lists of two specs against the definition written out element by element.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "quantize/quantize.h"
#include "quantize/stages.h"
#include "random_values.h"

using namespace wasmquant;

namespace {

QuantizationSpec stages_spec_of(Dtype dtype, QScheme qscheme, int64_t group_size = 0) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.qscheme = qscheme;
  spec.ch_axis = qscheme == QScheme::per_group ? -1 : 0;
  spec.group_size = group_size;
  return spec;
}

void ranges_of(const Granularity& g, const std::vector<float>& x, std::vector<float>& min, std::vector<float>& max) {
  min.assign(static_cast<size_t>(g.scale_count()), INFINITY);
  max.assign(min.size(), -INFINITY);
  for_each_run(g, 0, x.size(), [&](const Run& run) {
    for (uint64_t i = 0; i < run.count; ++i) {
      const auto scale = static_cast<size_t>(run.scale + i * run.scale_stride);
      const float v = x[static_cast<size_t>(run.begin + i)];
      min[scale] = std::min(min[scale], v);
      max[scale] = std::max(max[scale], v);
    }
  });
}

}  // namespace

TEST_CASE("progressive: fp8 per tensor, then int4 per channel") {
  const std::vector<float> x = normal_values(8 * 40, 11, 0, 0.05f);
  const auto stages = TwoStages::create(stages_spec_of(Dtype::fp8_e4m3, QScheme::per_tensor),
                                        stages_spec_of(Dtype::int4, QScheme::per_channel), {8, 40});
  REQUIRE(static_cast<bool>(stages));
  std::vector<float> min, max;
  ranges_of(stages->granularity(), x, min, max);
  const TwoStages::Scales scales = stages->scales_of(min, max);
  std::vector<uint8_t> codes(x.size());
  stages->quantize(scales, x, 0, codes.data());
  std::vector<float> y(x.size());
  stages->dequantize(scales, codes.data(), x.size(), 0, y.data());

  const FloatFormat fp8 = float_format_of(Dtype::fp8_e4m3);
  const auto cast = [&](float v) { return decode(fp8, encode(fp8, v, Overflow::saturate)); };
  float amax = 0;
  for (const float v : x) amax = std::max(amax, std::fabs(v));
  const float s1 = amax / 448.0f;
  CHECK(scales.other.scale == s1);
  for (size_t row = 0; row < 8; ++row) {
    float row_amax = 0;
    for (size_t i = 0; i < 40; ++i) row_amax = std::max(row_amax, std::fabs(cast(x[row * 40 + i] / s1)));
    const float s2 = row_amax / 7.5f, inverse = 1.0f / s2;
    for (size_t i = row * 40; i < row * 40 + 40; ++i) {
      const float q = std::clamp(std::nearbyint(cast(x[i] / s1) * inverse), -8.0f, 7.0f);
      CHECK(static_cast<float>(static_cast<int8_t>(codes[i])) == q);
      CHECK(y[i] == q * s2 * s1);
    }
  }
}

TEST_CASE("scale quant: the scales of groups as fp8") {
  const std::vector<float> x = normal_values(6 * 64, 11, 0, 0.05f);
  QuantizationSpec second = stages_spec_of(Dtype::fp8_e4m3, QScheme::per_tensor);
  second.is_scale_quant = true;
  const auto stages = TwoStages::create(stages_spec_of(Dtype::fp4, QScheme::per_group, 16), second, {6, 64});
  REQUIRE(static_cast<bool>(stages));
  std::vector<float> min, max;
  ranges_of(stages->granularity(), x, min, max);
  const TwoStages::Scales scales = stages->scales_of(min, max);
  std::vector<uint8_t> codes(x.size());
  stages->quantize(scales, x, 0, codes.data());
  std::vector<float> y(x.size());
  stages->dequantize(scales, codes.data(), x.size(), 0, y.data());

  const FloatFormat fp8 = float_format_of(Dtype::fp8_e4m3), fp4 = float_format_of(Dtype::fp4);
  std::vector<float> scale;
  float largest = 0;
  for (size_t g = 0; g < 24; ++g) {
    scale.push_back(std::max(-min[g], max[g]) / 6.0f);
    largest = std::max(largest, scale.back());
  }
  const float s2 = largest / 448.0f;
  CHECK(scales.other.scale == s2);
  for (size_t i = 0; i < x.size(); ++i) {
    const uint32_t code = encode(fp8, scale[i / 16] / s2, Overflow::saturate);
    CHECK(scales.scale_codes[i / 16] == code);
    const float s = decode(fp8, code) * s2;
    CHECK(y[i] == decode(fp4, encode(fp4, x[i] / s, Overflow::saturate)) * s);
  }
}

TEST_CASE("stages: meaningless lists are refused") {
  const std::vector<uint64_t> shape = {4, 32};
  const auto fp8 = stages_spec_of(Dtype::fp8_e4m3, QScheme::per_tensor),
             int4 = stages_spec_of(Dtype::int4, QScheme::per_channel);
  auto scale_quant = fp8;
  scale_quant.is_scale_quant = true;
  CHECK_FALSE(static_cast<bool>(TwoStages::create(int4, fp8, shape)));
  CHECK_FALSE(static_cast<bool>(TwoStages::create(fp8, scale_quant, shape)));
  CHECK_FALSE(static_cast<bool>(TwoStages::create(fp8, stages_spec_of(Dtype::bfloat16, QScheme::per_tensor), shape)));
  CHECK_FALSE(static_cast<bool>(TwoStages::create(fp8, stages_spec_of(Dtype::mx9, QScheme::per_group, 16), shape)));
  CHECK(static_cast<bool>(TwoStages::create(fp8, int4, shape)));
}
