// Tensors that formulas trip over, for every dtype and way to scale it: empty, one element, all zero, constant,
// subnormal, the ends of float32, NaN and infinities. Documented in quantize.h and observer.h.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "observers/registry.h"
#include "quantize/block_float.h"
#include "quantize/quantize.h"

using namespace wasmquant;

namespace {

constexpr float kMax = std::numeric_limits<float>::max(),
                kSpecialValuesInfinity = std::numeric_limits<float>::infinity();

struct SpecialValuesSetting {
  std::string name;
  QuantizationSpec spec;
};

std::vector<SpecialValuesSetting> special_values_settings() {
  std::vector<SpecialValuesSetting> all;
  for (const DtypeInfo& dtype : kDtypes)
    for (const bool symmetric : {true, false})
      for (const QScheme qscheme : {QScheme::per_tensor, QScheme::per_channel, QScheme::per_group, QScheme::per_block})
        for (const ScaleFormat format : {ScaleFormat::float32, ScaleFormat::e8m0, ScaleFormat::e4m3, ScaleFormat::e5m3})
          for (const ScaleCalculationMode mode : {ScaleCalculationMode::even, ScaleCalculationMode::floor}) {
            const bool has_format = dtype.kind == DtypeKind::floating && !dtype.is_plain_cast();
            if (!symmetric && !dtype.is_integer) continue;
            if (!has_format && format != ScaleFormat::float32) continue;
            if (format != ScaleFormat::e8m0 && mode != ScaleCalculationMode::even) continue;
            if (dtype.is_block() && qscheme != QScheme::per_group) continue;
            QuantizationSpec spec;
            spec.dtype = dtype.dtype;
            spec.symmetric = symmetric;
            spec.qscheme = qscheme;
            spec.ch_axis = qscheme == QScheme::per_channel ? 0 : -1;
            spec.group_size = dtype.is_integer || dtype.is_block() ? 8 : 7;  // floats: a short last group
            spec.block_rows = 2, spec.block_columns = 3;
            spec.exponent_bits = 3, spec.mantissa_bits = 2;
            spec.scale_format = format;
            spec.scale_calculation_mode = mode;
            spec.observer = min_max_observer_for(qscheme);
            all.push_back({std::string(dtype.name) + (symmetric ? " sym " : " asym ") +
                               std::to_string(static_cast<int>(qscheme)) + " format " +
                               std::to_string(static_cast<int>(format)),
                           spec});
          }
  return all;
}

// Values of the fake path.
std::vector<float> fake(const QuantizationSpec& spec, const std::vector<float>& x, const std::vector<uint64_t>& shape) {
  const auto found = observe_tensor(spec, x, shape);
  REQUIRE(static_cast<bool>(found));
  for (const QParams& q : found->qparams) {
    REQUIRE(std::isfinite(q.scale));
    REQUIRE(q.scale > 0);
    REQUIRE(std::isfinite(q.zero_point));
  }
  std::vector<float> y(x.size());
  if (info_of(spec.dtype).is_block())
    fake_quantize_blocks(found->granularity, spec, x, y.data());
  else
    fake_quantize(found->granularity, spec, found->qparams, x, 0, y.data());
  return y;
}

}  // namespace

TEST_CASE("zeros stay zeros, of either sign") {
  for (const SpecialValuesSetting& s : special_values_settings()) {
    CAPTURE(s.name);
    for (const float zero : {0.0f, -0.0f})
      for (const float v : fake(s.spec, std::vector<float>(3 * 16, zero), {3, 16})) REQUIRE(v == 0.0f);
  }
}

TEST_CASE("constants round-trip as far as the format allows") {
  for (const SpecialValuesSetting& s : special_values_settings()) {
    CAPTURE(s.name);
    const DtypeInfo& dtype = info_of(s.spec.dtype);
    for (const float constant : {0.7f, -0.7f, 1.0f}) {
      for (const float v : fake(s.spec, std::vector<float>(3 * 16, constant), {3, 16})) {
        REQUIRE(std::isfinite(v));
        if (constant < 0 && s.spec.symmetric && !dtype.is_signed) {
          REQUIRE(v == 0.0f);  // no negative codes
        } else {
          // int2 has the values -2, -1, 0, 1 times 2/3 of the largest magnitude; all others are closer.
          REQUIRE(std::fabs(v - constant) <= 0.34f * std::fabs(constant));
        }
      }
    }
  }
}

TEST_CASE("one element and none") {
  for (const SpecialValuesSetting& s : special_values_settings()) {
    CAPTURE(s.name);
    if (s.spec.qscheme == QScheme::per_group && info_of(s.spec.dtype).is_integer) continue;  // 8 does not divide 1
    const std::vector<uint64_t> one =
        s.spec.qscheme == QScheme::per_block ? std::vector<uint64_t>{1, 1} : std::vector<uint64_t>{1};
    REQUIRE(std::isfinite(fake(s.spec, {0.5f}, one).front()));
    if (s.spec.qscheme == QScheme::per_tensor || info_of(s.spec.dtype).is_plain_cast())
      REQUIRE(fake(s.spec, {}, {0}).empty());
  }
}

TEST_CASE("subnormals and the largest numbers give finite values") {
  for (const SpecialValuesSetting& s : special_values_settings()) {
    CAPTURE(s.name);
    for (const float magnitude : {0x1p-149f, 0x1p-130f, 0x1p-126f, kMax}) {
      CAPTURE(magnitude);
      std::vector<float> x(3 * 16, magnitude);
      for (size_t i = 0; i < x.size(); i += 2) x[i] = -magnitude;
      for (const float v : fake(s.spec, x, {3, 16})) {
        // float16 overflows by its rules; the codes of others end at most one step above the largest number.
        if (s.spec.dtype == Dtype::float16 || s.spec.dtype == Dtype::bfloat16 || magnitude == kMax)
          REQUIRE_FALSE(std::isnan(v));
        else
          REQUIRE(std::isfinite(v));
      }
    }
  }
}

TEST_CASE("NaN and infinities are refused with their place, for every dtype") {
  for (const SpecialValuesSetting& s : special_values_settings()) {
    CAPTURE(s.name);
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kSpecialValuesInfinity, -kSpecialValuesInfinity}) {
      std::vector<float> x(3 * 16, 0.25f);
      x[17] = bad;
      const auto found = observe_tensor(s.spec, x, {3, 16});
      REQUIRE_FALSE(static_cast<bool>(found));
      REQUIRE(found.error().code == ErrorCode::value_not_finite);
      REQUIRE(found.error().message.find("17") != std::string::npos);
    }
  }
}
