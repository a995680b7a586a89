// Ranges to scales. float32 in the order of AMD Quark's observers, so that scales agree with it to the bit.
#include "quantize/qparams.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wasmquant {
namespace {

constexpr float kSmallestNormal = 0x1p-126f;

// Largest magnitude of a range that includes zero.
float magnitude_of(float min, float max) noexcept { return std::max(std::max(-min, max), 0.0f); }

// (max - min) / steps; a difference beyond float32 is divided before it is taken.
float range_over(float min, float max, float steps) noexcept {
  const float range = max - min;
  return std::isfinite(range) ? range / steps : max / steps - min / steps;
}

// A scale has to stay positive and finite in its storage type, or nothing could be read back with it.
float store_scale(float scale, ScaleType type) noexcept {
  if (type != ScaleType::float16 && type != ScaleType::bfloat16) return scale;
  uint16_t bits;
  float stored;
  if (type == ScaleType::float16) {
    scale = std::min(scale, static_cast<float>(info_of(Dtype::float16).max_finite));
    kernels::narrow_f16({&scale, 1}, &bits);
    kernels::widen_f16({&bits, 1}, &stored);
  } else {
    scale = std::min(scale, static_cast<float>(info_of(Dtype::bfloat16).max_finite));
    kernels::narrow_bf16({&scale, 1}, &bits);
    kernels::widen_bf16({&bits, 1}, &stored);
  }
  return stored > 0 ? stored : kScaleEpsilon;  // 2^-23 is a value of both types
}

QParams float_qparams(float min, float max, const DtypeInfo& dtype) noexcept {
  const float scale = magnitude_of(min, max) / static_cast<float>(dtype.max_finite);
  return {scale == 0 ? kScaleEpsilon : scale, 0};
}

QParams symmetric_qparams(float min, float max, float steps) noexcept {
  return {std::max(magnitude_of(min, max) / (steps / 2), kScaleEpsilon), 0};
}

// zero_point_type int32: zero is made part of the range, so that it has a code.
QParams asymmetric_qparams(float min, float max, const DtypeInfo& dtype, float steps) noexcept {
  const float low = std::min(min, 0.0f), high = std::max(max, 0.0f);
  const float scale = std::max(range_over(low, high, steps), kScaleEpsilon);
  const float zero_point = static_cast<float>(dtype.quant_min) - std::nearbyint(low / scale);
  return {scale, std::clamp(zero_point, static_cast<float>(dtype.quant_min), static_cast<float>(dtype.quant_max))};
}

// zero_point_type float32: the range as it is, zero point fractional and without quant_min (Quark; for unsigned
// dtypes).
QParams float_zero_point_qparams(float min, float max, float steps) noexcept {
  const float scale = range_over(min, max, steps);
  const float usable = scale > kScaleEpsilon ? scale : 1.0f;
  return {usable, (0.0f - min) / usable};
}

}  // namespace

QParams qparams_of(float min, float max, const QuantizationSpec& spec) noexcept {
  if (min > max) return {1.0f, 0.0f};
  const DtypeInfo& dtype = info_of(spec.dtype);
  const float steps = static_cast<float>(dtype.quant_max - dtype.quant_min);
  QParams q;
  if (!dtype.is_integer)
    q = float_qparams(min, max, dtype);
  else if (spec.symmetric)
    q = symmetric_qparams(min, max, steps);
  else if (spec.zero_point_type == ZeroPointType::float32)
    q = float_zero_point_qparams(min, max, steps);
  else
    q = asymmetric_qparams(min, max, dtype, steps);
  q.scale = store_scale(q.scale, spec.scale_type);
  return q;
}

kernels::Affine affine_of(const QParams& q, const QuantizationSpec& spec) noexcept {
  const DtypeInfo& dtype = info_of(spec.dtype);
  return {q.scale, 1.0f / std::max(q.scale, kSmallestNormal), q.zero_point, static_cast<float>(dtype.quant_min),
          static_cast<float>(dtype.quant_max)};
}

}  // namespace wasmquant
