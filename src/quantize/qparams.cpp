// Ranges to scales. float32 in the order of AMD Quark's observers, so that scales agree with it to the bit.
#include "quantize/qparams.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "numeric/e8m0.h"
#include "numeric/exponential.h"
#include "numeric/half.h"
#include "quantize/block_scale.h"

namespace wasmquant {
namespace {

constexpr float kSmallestE5m3 = 0x1p-17f;
// An MX integer counts as an element with 8 mantissa bits and values below 2 (spec 3.4).
constexpr int kMxIntegerMantissaBits = 8;

// Largest magnitude of a range that includes zero.
float magnitude_of(float min, float max) noexcept { return std::max(std::max(-min, max), 0.0f); }

float rounded_to_bfloat16(float x) noexcept {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000);
}

// `float` scales are of the arithmetic's dtype.
ScaleType scale_type_of(const QuantizationSpec& spec) noexcept {
  if (spec.scale_type != ScaleType::float_ || spec.scale_format != ScaleFormat::float32) return spec.scale_type;
  if (spec.grid.arithmetic == Arithmetic::bfloat16) return ScaleType::bfloat16;
  return spec.grid.arithmetic == Arithmetic::float16 ? ScaleType::float16 : spec.scale_type;
}

// Scales of floats whose type is given are divided in that type; those of integers are converted to it afterwards.
Arithmetic scale_arithmetic(const QuantizationSpec& spec) noexcept {
  const bool is_own_type = !info_of(spec.dtype).is_integer && spec.scale_type != ScaleType::float_;
  return is_own_type ? Arithmetic::float32 : spec.grid.arithmetic;
}

// (max - min) / steps; if the difference overflows float32, divides first.
float range_over(float min, float max, float steps) noexcept {
  const float range = max - min;
  return std::isfinite(range) ? range / steps : max / steps - min / steps;
}

constexpr float kLargestHalf = 65504.0f, kLargestBfloat16 = 0x1.FEp127f;

float above_zero(float stored) noexcept {
  return stored > 0 ? stored : kScaleEpsilon;  // 2^-23 is a value of both types
}

// The magnitude of a scale must stay above zero and finite in its storage type, or nothing could be dequantized.
float store_scale(float scale, ScaleType type, Arithmetic arithmetic) noexcept {
  if (scale < 0) return -store_scale(-scale, type, arithmetic);
  switch (type) {
    case ScaleType::float16:
      if (arithmetic != Arithmetic::float16 && scale > 0x1p-25f && scale < 0x1p-14f) return half_scale_of(scale);
      return above_zero(from_half(half_of(std::min(scale, kLargestHalf))));
    case ScaleType::bfloat16:
      return above_zero(rounded_to_bfloat16(std::min(scale, kLargestBfloat16)));
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

float integer_divisor(const QuantizationSpec& spec, bool is_magnitude) noexcept {
  const DtypeInfo& dtype = info_of(spec.dtype);
  const auto lowest = static_cast<double>(quant_min_of(spec)), highest = static_cast<double>(quant_max_of(spec));
  const auto codes = static_cast<double>(uint64_t{1} << dtype.bits);
  if (spec.scale_sign != ScaleSign::positive && is_magnitude) return static_cast<float>(-lowest);
  switch (spec.grid.divisor) {
    case ScaleDivisor::code_count:
      return static_cast<float>(is_magnitude ? codes / 2 : codes);
    case ScaleDivisor::largest_code:
      return static_cast<float>(is_magnitude ? highest : highest - lowest);
    case ScaleDivisor::smallest_code:
      return static_cast<float>(is_magnitude && dtype.is_signed ? -lowest : highest - lowest);
    case ScaleDivisor::half_range:
      break;
  }
  const auto steps = static_cast<float>(highest - lowest);
  return is_magnitude ? steps / 2 : steps;
}

// 2^floor or 2^ceil of log2(threshold) rounded to float32: next to a power of two it may be whole. 0 stays 0.
float power_of_two_by(float threshold, bool up) noexcept {
  if (!(threshold > 0)) return threshold;
  const auto log2 = static_cast<float>(log2_of(threshold));
  const float exponent = up ? std::ceil(log2) : std::floor(log2);
  return static_cast<float>(power_of_two(std::min(static_cast<int>(exponent), 127)));
}

float rounded_threshold(float threshold, const RoundingGrid& grid) noexcept {
  if (grid.threshold_rounding == ThresholdRounding::floor) threshold = power_of_two_by(threshold, false);
  if (grid.threshold_rounding == ThresholdRounding::ceil_unfloored) threshold = power_of_two_by(threshold, true);
  threshold = std::max(threshold, grid.smallest_threshold);
  return grid.threshold_rounding == ThresholdRounding::ceil ? power_of_two_by(threshold, true) : threshold;
}

// Whether scales are not computed as Quark's are, which has a rule of its own for fractional zero points.
bool has_own_scales(const RoundingGrid& grid) noexcept {
  const RoundingGrid standard;
  return grid.divisor != standard.divisor || grid.threshold_rounding != standard.threshold_rounding ||
         grid.smallest_scale != standard.smallest_scale || grid.smallest_threshold != standard.smallest_threshold ||
         grid.smallest_max != standard.smallest_max;
}

}  // namespace

float largest_zero_point(const QuantizationSpec& spec) noexcept {
  const auto rounded = static_cast<float>(quant_max_of(spec));
  return static_cast<double>(rounded) > static_cast<double>(quant_max_of(spec)) ? std::nextafter(rounded, 0.0f)
                                                                                : rounded;
}

float rounded_to(Arithmetic arithmetic, float x) noexcept {
  switch (arithmetic) {
    case Arithmetic::bfloat16:
      return rounded_to_bfloat16(x);
    case Arithmetic::float16:
      return from_half(half_of(x));
    default:
      return x;
  }
}

Arithmetic quotient_arithmetic(const QuantizationSpec& spec) noexcept {
  const bool is_grouped = spec.qscheme == QScheme::per_group || spec.qscheme == QScheme::per_block;
  const bool is_float32 = is_grouped || info_of(spec.dtype).is_integer || spec.dtype == Dtype::fp8_e5m3;
  return is_float32 ? Arithmetic::float32 : spec.grid.arithmetic;
}

ScaleRule::ScaleRule(const QuantizationSpec& spec, float second_scale) noexcept
    : scale_format_(spec.scale_format),
      scale_type_(scale_type_of(spec)),
      mode_(spec.scale_calculation_mode),
      is_integer_(info_of(spec.dtype).is_integer),
      is_magnitude_(!is_integer_ || spec.symmetric || is_mx_integer(spec)),
      is_signed_(spec.scale_sign != ScaleSign::positive),
      has_fractional_zero_point_(spec.zero_point_type == ZeroPointType::float32),
      has_own_scales_(has_own_scales(spec.grid)),
      mantissa_bits_(kMxIntegerMantissaBits),
      max_exponent_(0),
      arithmetic_(spec.grid.arithmetic),
      of_scales_(scale_arithmetic(spec)),
      of_zero_points_(spec.qscheme == QScheme::per_tensor ? Arithmetic::float32 : arithmetic_),
      grid_(spec.grid),
      divisor_(integer_divisor(spec, is_magnitude_)),
      steps_(static_cast<float>(static_cast<double>(quant_max_of(spec)) - static_cast<double>(quant_min_of(spec)))),
      quant_min_(static_cast<float>(quant_min_of(spec))),
      zero_point_max_(largest_zero_point(spec)),
      second_scale_(second_scale) {
  if (info_of(spec.dtype).is_block()) divisor_ = 1;  // block dtypes have no scale
  if (info_of(spec.dtype).kind != DtypeKind::floating) return;
  const FloatFormat format = float_format_of(spec);
  mantissa_bits_ = format.mantissa_bits;
  max_exponent_ = format.max_exponent();
  divisor_ = static_cast<float>(format.max_finite());
}

float ScaleRule::scale_of_threshold(float threshold) const noexcept {
  return rounded_to(of_scales_, rounded_threshold(threshold, grid_) / divisor_);
}

float ScaleRule::floored(float scale) const noexcept {
  const float at_least = std::max(scale, grid_.smallest_scale);
  return at_least == 0 ? kScaleEpsilon : at_least;
}

float ScaleRule::scale_of_magnitude(float amax) const noexcept {
  switch (scale_format_) {
    case ScaleFormat::e8m0:
      return e8m0_scale_of(std::max(amax, grid_.smallest_threshold), mantissa_bits_, max_exponent_, mode_);
    case ScaleFormat::e4m3: {
      const float block = rounded_to_fp8(Dtype::fp8_e4m3, amax / divisor_ / second_scale_);
      return (block == 0 ? 1.0f : block) * second_scale_;
    }
    case ScaleFormat::e5m3: {
      const float rounded = rounded_to_fp8(Dtype::fp8_e5m3, rounded_to(of_scales_, amax / divisor_));
      return rounded == 0 ? kScaleEpsilon : rounded;
    }
    case ScaleFormat::float32:
      break;
  }
  const float scale = scale_of_threshold(amax);
  if (is_integer_) return floored(scale);
  return scale == 0 ? grid_.smallest_scale : scale;
}

QParams ScaleRule::with_zero_point(float scale, float low) const noexcept {
  const float at_least = floored(scale);
  const float position = rounded_to(of_zero_points_, low / (grid_.zero_point_of_unfloored ? scale : at_least));
  if (has_fractional_zero_point_) return {store_scale(at_least, scale_type_, arithmetic_), 0.0f - position};
  return {store_scale(at_least, scale_type_, arithmetic_),
          std::clamp(quant_min_ - std::nearbyint(position), quant_min_, zero_point_max_)};
}

float ScaleRule::stored(float scale) const noexcept { return store_scale(floored(scale), scale_type_, arithmetic_); }

QParams ScaleRule::of_threshold(float threshold, float low) const noexcept {
  if (is_magnitude_) return {store_scale(scale_of_magnitude(threshold), scale_type_, arithmetic_), 0.0f};
  return with_zero_point(scale_of_threshold(threshold), low);
}

QParams ScaleRule::operator()(float min, float max) const noexcept {
  if (min > max) return {1.0f, 0.0f};
  min = rounded_to(arithmetic_, min);
  max = rounded_to(arithmetic_, max);
  if (is_magnitude_) {
    QParams q = of_threshold(magnitude_of(min, std::max(max, grid_.smallest_max)), 0.0f);
    if (is_signed_ && max > -min) q.scale = -q.scale;
    return q;
  }
  if (is_signed_) {
    constexpr float kSmallest = 1e-7f;
    const bool is_lower = std::fabs(min) > std::fabs(max);
    const float end = is_lower ? min : max, step = std::max(range_over(min, max, steps_), kSmallest);
    const float scale = is_lower ? step : -step, code = std::nearbyint(end / scale);
    return {store_scale(code != 0 ? end / code : scale, scale_type_, arithmetic_), 0.0f - code};
  }
  if (has_fractional_zero_point_ && !has_own_scales_) {
    // The unmodified range, zero point fractional and without quant_min (Quark; for unsigned dtypes).
    float scale = rounded_to(arithmetic_, range_over(min, max, steps_));
    scale = scale > kScaleEpsilon ? scale : 1.0f;
    return {store_scale(scale, scale_type_, arithmetic_), rounded_to(arithmetic_, (0.0f - min) / scale)};
  }
  // The range is extended to include zero, so that zero has a code.
  const float low = std::min(min, 0.0f), high = grid_.max_includes_zero ? std::max(max, grid_.smallest_max) : max;
  const float range = rounded_to(arithmetic_, high - low);
  if (std::isfinite(range)) return of_threshold(range, low);
  return with_zero_point(range_over(low, high, divisor_), low);
}

float second_scale_of(float tensor_magnitude, const QuantizationSpec& spec, float max_block_scale) noexcept {
  const float divisor = static_cast<float>(float_format_of(spec).max_finite()) * max_block_scale;
  const float scale = tensor_magnitude / divisor;
  return scale > 0 ? scale : kScaleEpsilon;
}

ValueRange range_of(std::span<const float> min, std::span<const float> max) noexcept {
  ValueRange range;
  for (size_t i = 0; i < min.size(); ++i)
    if (min[i] <= max[i]) range.add({min[i], max[i]});
  return range;
}

float second_scale_of(const ValueRange& range, const QuantizationSpec& spec, float max_block_scale) noexcept {
  return second_scale_of(range.empty() ? 0.0f : magnitude_of(range.min, range.max), spec, max_block_scale);
}

float second_scale_or_one(const ValueRange& range, const QuantizationSpec& spec) noexcept {
  return spec.scale_format == ScaleFormat::e4m3 ? second_scale_of(range, spec) : 1.0f;
}

QuantizationSpec spec_for_data(const QuantizationSpec& spec, std::span<const float> min) noexcept {
  QuantizationSpec settled = spec;
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (!spec.grid.sign_by_data || !spec.symmetric || !dtype.is_integer) return settled;
  settled.grid.sign_by_data = false;
  if (std::any_of(min.begin(), min.end(), [](float low) { return low < 0; })) return settled;
  for (const DtypeInfo& row : kDtypes)
    if (row.is_integer && !row.is_signed && row.bits == dtype.bits) settled.dtype = row.dtype;
  return settled;
}

void qparams_of_ranges(std::span<const float> min, std::span<const float> max, const QuantizationSpec& spec,
                       float second_scale, std::span<QParams> qparams) noexcept {
  const ScaleRule rule(spec_for_data(spec, min), second_scale);
  for (size_t i = 0; i < qparams.size(); ++i) qparams[i] = rule(min[i], max[i]);
}

void qparams_of_ranges(std::span<const float> min, std::span<const float> max, const QuantizationSpec& spec,
                       std::span<QParams> qparams) noexcept {
  qparams_of_ranges(min, max, spec, second_scale_or_one(range_of(min, max), spec), qparams);
}

QParams qparams_of(float min, float max, const QuantizationSpec& spec) noexcept { return ScaleRule(spec)(min, max); }

AffineRule::AffineRule(const QuantizationSpec& spec) noexcept
    : is_mx_(is_mx_integer(spec)),
      divides_(!is_mx_ && spec.grid.divides),
      unit_(is_mx_ ? static_cast<float>(power_of_two(2 - info_of(spec.dtype).bits)) : 1.0f),
      quant_min_(static_cast<float>(is_mx_ ? -info_of(spec.dtype).quant_max : quant_min_of(spec))),
      quant_max_(static_cast<float>(is_mx_ ? info_of(spec.dtype).quant_max : quant_max_of(spec))) {}

void AffineRule::of(std::span<const QParams> q, float* scale, float* zero_point, float* inverse) const noexcept {
  for (size_t i = 0; i < q.size(); ++i) {
    scale[i] = q[i].scale;
    zero_point[i] = q[i].zero_point;
  }
  if (is_mx_ || (inverse != nullptr && divides_)) {  // rare
    for (size_t i = 0; i < q.size(); ++i) {
      const kernels::Affine a = (*this)(q[i]);
      scale[i] = a.scale;
      if (inverse != nullptr) inverse[i] = a.inverse;
    }
  } else if (inverse != nullptr) {
    for (size_t i = 0; i < q.size(); ++i) inverse[i] = 1.0f / divisor_of(scale[i]);
  }
}

}  // namespace wasmquant
