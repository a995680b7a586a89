// Ranges to scales. float32 in the order of AMD Quark's observers, so that scales agree with it to the bit.
#include "quantize/qparams.h"

#include <algorithm>
#include <cmath>

#include "numeric/e8m0.h"
#include "quantize/block_scale.h"

namespace wasmquant {
namespace {

constexpr float kSmallestE5m3 = 0x1p-17f;
constexpr float kMaxBlockScale = 448.0f;  // of fp8_e4m3
// An MX integer counts as an element with 8 mantissa bits and values below 2 (spec 3.4).
constexpr int kMxIntegerMantissaBits = 8;

// Largest magnitude of a range that includes zero.
float magnitude_of(float min, float max) noexcept { return std::max(std::max(-min, max), 0.0f); }

// (max - min) / steps; a difference beyond float32 is divided before it is taken.
float range_over(float min, float max, float steps) noexcept {
  const float range = max - min;
  return std::isfinite(range) ? range / steps : max / steps - min / steps;
}

float through_16_bits(Dtype dtype, float scale) noexcept {
  const FloatFormat format = float_format_of(dtype);
  const float stored = decode(format, encode(format, scale, Overflow::saturate));
  return stored > 0 ? stored : kScaleEpsilon;  // 2^-23 is a value of both types
}

// A scale has to stay positive and finite in its storage type, or nothing could be read back with it.
float store_scale(float scale, ScaleType type) noexcept {
  switch (type) {
    case ScaleType::float16:
      return through_16_bits(Dtype::float16, scale);
    case ScaleType::bfloat16:
      return through_16_bits(Dtype::bfloat16, scale);
    case ScaleType::float8_e5m3:
      return std::max(rounded_to_fp8(Dtype::fp8_e5m3, scale), kSmallestE5m3);
    case ScaleType::float8_e8m0fnu:
      return decode_e8m0(encode_e8m0(scale));
    default:
      return scale;
  }
}

bool is_mx_integer(const QuantizationSpec& spec) noexcept {
  return info_of(spec.dtype).is_integer && spec.scale_format == ScaleFormat::e8m0;
}

}  // namespace

ScaleRule::ScaleRule(const QuantizationSpec& spec, float second_scale) noexcept
    : scale_format_(spec.scale_format),
      scale_type_(spec.scale_type),
      mode_(spec.scale_calculation_mode),
      is_integer_(info_of(spec.dtype).is_integer),
      is_magnitude_(!is_integer_ || spec.symmetric || is_mx_integer(spec)),
      has_fractional_zero_point_(spec.zero_point_type == ZeroPointType::float32),
      mantissa_bits_(kMxIntegerMantissaBits),
      max_exponent_(0),
      steps_(static_cast<float>(static_cast<double>(info_of(spec.dtype).quant_max) -
                                static_cast<double>(info_of(spec.dtype).quant_min))),
      quant_min_(static_cast<float>(info_of(spec.dtype).quant_min)),
      quant_max_(static_cast<float>(info_of(spec.dtype).quant_max)),
      second_scale_(second_scale) {
  divisor_ = info_of(spec.dtype).is_block() ? 1.0f : steps_ / 2;  // block dtypes have no scale
  if (info_of(spec.dtype).kind != DtypeKind::floating) return;
  const FloatFormat format = float_format_of(spec);
  mantissa_bits_ = format.mantissa_bits;
  max_exponent_ = format.max_exponent();
  divisor_ = static_cast<float>(format.max_finite());
}

float ScaleRule::scale_of_magnitude(float amax) const noexcept {
  switch (scale_format_) {
    case ScaleFormat::e8m0:
      return e8m0_scale_of(amax, mantissa_bits_, max_exponent_, mode_);
    case ScaleFormat::e4m3: {
      const float block = rounded_to_fp8(Dtype::fp8_e4m3, amax / divisor_ / second_scale_);
      return (block == 0 ? 1.0f : block) * second_scale_;
    }
    case ScaleFormat::e5m3: {
      const float rounded = rounded_to_fp8(Dtype::fp8_e5m3, amax / divisor_);
      return rounded == 0 ? kScaleEpsilon : rounded;
    }
    case ScaleFormat::float32:
      break;
  }
  const float scale = amax / divisor_;
  if (is_integer_) return std::max(scale, kScaleEpsilon);
  return scale == 0 ? kScaleEpsilon : scale;
}

QParams ScaleRule::operator()(float min, float max) const noexcept {
  if (min > max) return {1.0f, 0.0f};
  QParams q{1.0f, 0.0f};
  if (is_magnitude_) {
    q.scale = scale_of_magnitude(magnitude_of(min, max));
  } else if (has_fractional_zero_point_) {
    // The range as it is, zero point fractional and without quant_min (Quark; for unsigned dtypes).
    const float scale = range_over(min, max, steps_);
    q.scale = scale > kScaleEpsilon ? scale : 1.0f;
    q.zero_point = (0.0f - min) / q.scale;
  } else {
    // Zero is made part of the range, so that it has a code.
    const float low = std::min(min, 0.0f), high = std::max(max, 0.0f);
    q.scale = std::max(range_over(low, high, steps_), kScaleEpsilon);
    q.zero_point = std::clamp(quant_min_ - std::nearbyint(low / q.scale), quant_min_, quant_max_);
  }
  q.scale = store_scale(q.scale, scale_type_);
  return q;
}

float second_scale_of(float tensor_magnitude, const QuantizationSpec& spec) noexcept {
  const float divisor = static_cast<float>(float_format_of(spec).max_finite()) * kMaxBlockScale;
  const float scale = tensor_magnitude / divisor;
  return scale > 0 ? scale : kScaleEpsilon;
}

float second_scale_of(std::span<const float> min, std::span<const float> max, const QuantizationSpec& spec) noexcept {
  float magnitude = 0;
  for (size_t i = 0; i < min.size(); ++i)
    if (min[i] <= max[i]) magnitude = std::max(magnitude, magnitude_of(min[i], max[i]));
  return second_scale_of(magnitude, spec);
}

void qparams_of_ranges(std::span<const float> min, std::span<const float> max, const QuantizationSpec& spec,
                       std::span<QParams> qparams) noexcept {
  const ScaleRule rule(spec, spec.scale_format == ScaleFormat::e4m3 ? second_scale_of(min, max, spec) : 1.0f);
  for (size_t i = 0; i < qparams.size(); ++i) qparams[i] = rule(min[i], max[i]);
}

QParams qparams_of(float min, float max, const QuantizationSpec& spec) noexcept { return ScaleRule(spec)(min, max); }

GridRule::GridRule(const QuantizationSpec& spec) noexcept
    : is_mx_(is_mx_integer(spec)),
      unit_(is_mx_ ? static_cast<float>(power_of_two(2 - info_of(spec.dtype).bits)) : 1.0f),
      quant_min_(static_cast<float>(is_mx_ ? -info_of(spec.dtype).quant_max : info_of(spec.dtype).quant_min)),
      quant_max_(static_cast<float>(info_of(spec.dtype).quant_max)) {}

kernels::Affine affine_of(const QParams& q, const QuantizationSpec& spec) noexcept { return GridRule(spec)(q); }

}  // namespace wasmquant
