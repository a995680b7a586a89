// Observed range to scale and zero point.
//   integers, symmetric:   scale = max(max(-min, max, 0) / ((quant_max - quant_min) / 2), 2^-23), zero_point 0
//                          (amax / 127.5, / 7.5)
//   integers, asymmetric:  scale = max((max - min) / (quant_max - quant_min), 2^-23) with 0 inside [min, max],
//                          zero_point = clamp(quant_min - round_half_even(min / scale))
//   integers, scale_sign signed:  scale = extreme / quant_min, the extreme being the end of larger magnitude, of equal ones
//                          the lower; its magnitude at least 2^-23, zero_point 0. No value lies beyond the codes.
//   integers, asymmetric, scale_sign signed:  codes count from the end of larger magnitude, of equal ones the upper:
//                          scale = +-max((max - min) / (quant_max - quant_min), 1e-7), positive from the lower end;
//                          q = round_half_even(end / scale); zero_point = -q, and if q is not 0 scale = end / q, so that 0
//                          is a multiple of it. Source: mlx, backend/cpu/quantized.cpp, quantize
//   floats:                scale = amax / max_finite, 2^-23 if that is 0; no zero point
//   scale_format e8m0:     a power of two (block_scale.cpp); with an integer dtype this is the MX integer format, whose
//                          values are code * scale / 2^(bits - 2)
//   scale_format e5m3:     (amax / max_finite) as fp8_e5m3, 2^-23 if that is 0
//   scale_format e4m3:     second = tensor amax / (max_finite * 448); the block's fp8_e4m3 code of
//                          (amax / max_finite) / second, 1 if that is 0; scale = that code's value * second (NVFP4)
//   arithmetic of 16 bits: every difference and quotient above is rounded to that dtype, except the zero point's of
//   integers per tensor (torch widens a scalar of 16 bits that meets one of 32) and scales with a scale_type of their own
// These are the rules of the default RoundingGrid; its fields change divisor, floors, rounding and code limits.
// Source: AMD Quark (spec 3.4, 4.2, 4.3, 5.6); torch.ao MinMaxObserver gives the same for integers; OCP Microscaling
// Formats specification 1.0 for e8m0.
#pragma once
#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "config/spec/spec.h"
#include "kernels/kernels.h"

namespace wasmquant {

/// The smallest scale of a min-max observer, 2^-23.
inline constexpr float kScaleEpsilon = 1.1920929e-07f;

/// `x` rounded to the dtype of the arithmetic: bfloat16 or float16; others leave it.
float rounded_to(Arithmetic arithmetic, float x) noexcept;
/// The arithmetic of x / scale for codes of floats: groups and fp8_e5m3 are computed in float32 (AMD Quark).
Arithmetic quotient_arithmetic(const QuantizationSpec& spec) noexcept;

/// Scale and zero point.
struct QParams {
  float scale;       // below zero only with ScaleSign::signed_
  float zero_point;  // 0 for floats and symmetric integers
};

/// The largest zero point: the largest float32 that is not above quant_max. For int32 that is 2^31 - 128.
float largest_zero_point(const QuantizationSpec& spec) noexcept;

/// The formula of one spec, with its constants precomputed.
class ScaleRule {
 public:
  /// `second_scale`: for scale_format e4m3, from second_scale_of; others ignore it.
  explicit ScaleRule(const QuantizationSpec& spec, float second_scale = 1.0f) noexcept;

  /// min > max (nothing seen) gives scale 1, zero point 0. The scale is already rounded to spec.scale_type; the zero
  /// point is computed before that rounding.
  QParams operator()(float min, float max) const noexcept;
  /// The same from a threshold: the largest magnitude if needs_only_magnitude(), else the length of a range whose lower
  /// end is `low` <= 0.
  QParams of_threshold(float threshold, float low) const noexcept;
  /// `scale` rounded to spec.scale_type, at least the smallest scale.
  float stored(float scale) const noexcept;
  /// Whether only the largest magnitude matters: (-amax, amax) gives the same as (min, max).
  bool needs_only_magnitude() const noexcept { return is_magnitude_ && !is_signed_ && !grid_.sign_by_data; }

 private:
  // At least RoundingGrid::smallest_scale; never 0.
  float floored(float scale) const noexcept;
  float scale_of_magnitude(float amax) const noexcept;
  float scale_of_threshold(float threshold) const noexcept;
  QParams with_zero_point(float scale, float low) const noexcept;

  ScaleFormat scale_format_;
  ScaleType scale_type_;
  ScaleCalculationMode mode_;
  bool is_integer_, is_magnitude_, is_signed_, has_fractional_zero_point_, has_own_scales_;
  int mantissa_bits_, max_exponent_;  // of the element, for e8m0
  Arithmetic arithmetic_, of_scales_, of_zero_points_;
  RoundingGrid grid_;
  float divisor_;  // of the threshold
  float steps_, quant_min_, zero_point_max_;
  float second_scale_;
};

/// The range of some values; min > max where there are none.
struct ValueRange {
  float min = std::numeric_limits<float>::infinity(), max = -std::numeric_limits<float>::infinity();

  bool empty() const noexcept { return min > max; }
  void add(const ValueRange& other) noexcept {
    min = std::min(min, other.min);
    max = std::max(max, other.max);
  }
};
/// The range of all ranges of a tensor.
ValueRange range_of(std::span<const float> min, std::span<const float> max) noexcept;

/// The largest scale of scale_format e4m3.
inline constexpr float kMaxBlockScale = 448.0f;
/// The scale of a whole tensor over its block scales, the largest of which is `max_block_scale`: magnitude divided by
/// the product of the largest element and that.
float second_scale_of(float tensor_magnitude, const QuantizationSpec& spec,
                      float max_block_scale = kMaxBlockScale) noexcept;
/// From the range of the whole tensor, or of several that share the scale.
float second_scale_of(const ValueRange& range, const QuantizationSpec& spec,
                      float max_block_scale = kMaxBlockScale) noexcept;
/// The same for scale_format e4m3, 1 for others, which have no second scale.
float second_scale_or_one(const ValueRange& range, const QuantizationSpec& spec) noexcept;

/// `spec` for a tensor with these range minima: if the sign depends on the data, they choose the dtype.
QuantizationSpec spec_for_data(const QuantizationSpec& spec, std::span<const float> min) noexcept;

/// One QParams per range, with the second scale of scale_format e4m3; where the sign depends on the data, the spec is
/// that of spec_for_data.
void qparams_of_ranges(std::span<const float> min, std::span<const float> max, const QuantizationSpec& spec,
                       float second_scale, std::span<QParams> qparams) noexcept;
/// The same with the second scale of these ranges.
void qparams_of_ranges(std::span<const float> min, std::span<const float> max, const QuantizationSpec& spec,
                       std::span<QParams> qparams) noexcept;

/// From a single range. Not for scale_format e4m3; does not choose signs by data.
QParams qparams_of(float min, float max, const QuantizationSpec& spec) noexcept;

/// The code grids of scales, for integer dtypes, with the spec's constants precomputed. With RoundingGrid::divides the
/// kernels get x / scale, and `inverse` is 1.
class AffineRule {
 public:
  explicit AffineRule(const QuantizationSpec& spec) noexcept;
  kernels::Affine operator()(const QParams& q) const noexcept {
    const float divisor = divisor_of(q.scale * unit_);
    return {is_mx_ ? divisor : q.scale, divides_ ? 1.0f : 1.0f / divisor, q.zero_point, quant_min_, quant_max_};
  }
  /// The same as one array per field; `inverse` may be null.
  void of(std::span<const QParams> q, float* scale, float* zero_point, float* inverse) const noexcept;
  float quant_min() const noexcept { return quant_min_; }
  float quant_max() const noexcept { return quant_max_; }

 private:
  static constexpr float kSmallestDivisor = 0x1p-126f;  // the smallest normal number
  static constexpr float divisor_of(float step) noexcept {
    return step > kSmallestDivisor || step < -kSmallestDivisor ? step : kSmallestDivisor;
  }
  bool is_mx_;  // MX integers: the step is scale / 2^(bits - 2), and no smaller than 2^-126
  bool divides_;
  float unit_;  // that power of two; 1 for others
  float quant_min_, quant_max_;
};

}  // namespace wasmquant
