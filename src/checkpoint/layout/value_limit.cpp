// The limit of each dtype of values and scales, and which weights are beyond it.
#include "checkpoint/layout/value_limit.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numeric/block_float.h"
#include "numeric/minifloat.h"

namespace wasmquant {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargestFloat = std::numeric_limits<float>::max();

Dtype dtype_of(StorageDtype dtype) { return dtype == StorageDtype::F16 ? Dtype::float16 : Dtype::bfloat16; }

float largest_of(StorageDtype dtype) {
  return dtype == StorageDtype::F32 ? kLargestFloat : static_cast<float>(float_format_of(dtype_of(dtype)).max_finite());
}

StorageDtype plain_or_f32(StorageDtype dtype) {
  return dtype == StorageDtype::F16 || dtype == StorageDtype::BF16 ? dtype : StorageDtype::F32;
}

// The largest |code - zero point|, in scales.
double reach_of(const QuantizationSpec& spec) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (!dtype.is_integer) return float_format_of(spec).max_finite();
  const auto low = static_cast<double>(quant_min_of(spec)), high = static_cast<double>(quant_max_of(spec));
  const double reach = spec.symmetric ? std::max(-low, high) : high - low;
  return spec.scale_format == ScaleFormat::e8m0 ? reach * power_of_two(2 - dtype.bits) : reach;
}

float top_step_of(const QuantizationSpec& spec) {
  const DtypeInfo& dtype = info_of(spec.dtype);
  if (dtype.is_integer) return 1;
  const FloatFormat format = float_format_of(spec);
  return static_cast<float>(power_of_two(format.max_exponent() - format.mantissa_bits));
}

// The largest scale of that storage for which the outermost codes do not exceed `largest`.
float largest_scale_of(StorageDtype storage, ScaleFormat format, float largest, double reach) {
  const auto bound = static_cast<float>(static_cast<double>(largest) / reach);
  if (format == ScaleFormat::e8m0) return static_cast<float>(power_of_two(std::ilogb(bound)));
  if (format != ScaleFormat::float32) return kInfinity;  // they are limited to far smaller values
  if (storage == StorageDtype::F32) {
    float scale = std::nextafter(bound, kInfinity);
    while (!std::isfinite(scale * static_cast<float>(reach))) scale = std::nextafter(scale, 0.0f);
    return scale;
  }
  const FloatFormat half = float_format_of(dtype_of(storage));
  uint32_t code = encode(half, bound, Overflow::saturate);
  while (static_cast<double>(decode(half, code)) * reach > static_cast<double>(largest)) --code;
  return decode(half, code);
}

float clamped_scale_of(const QuantizationSpec& spec) {
  if (spec.scale_format == ScaleFormat::e5m3 || spec.scale_type == ScaleType::float8_e5m3)
    return static_cast<float>(float_format_of(Dtype::fp8_e5m3).max_finite());
  return spec.scale_type == ScaleType::float16 ? largest_of(StorageDtype::F16) : kInfinity;
}

}  // namespace

bool ValueLimit::is_beyond(float y) const noexcept {
  if (dtype == StorageDtype::F32 || !std::isfinite(y)) return !std::isfinite(y);
  const FloatFormat format = float_format_of(dtype_of(dtype));
  return (encode(format, y, Overflow::infinity) & format.magnitude_mask()) == format.infinity();
}

bool ValueLimit::is_lost(float x, float y, float scale) const noexcept {
  const float magnitude = std::fabs(scale);
  return is_beyond(y) || (magnitude >= clamped_scale && std::fabs(x - y) > step * magnitude);
}

bool ValueLimit::depends_on_scales() const noexcept {
  return clamped_scale < kInfinity || (dtype != StorageDtype::F32 && largest_scale < kInfinity);
}

bool ValueLimit::may_lose(std::span<const QParams> qparams) const noexcept {
  const float least = std::min(std::nextafter(largest_scale, kInfinity), clamped_scale);
  float most = 0;
  for (const QParams& q : qparams) most = std::max(most, std::fabs(q.scale));
  return most >= least;
}

ValueLimit value_limit_of(const WeightLayout& layout) noexcept {
  const DtypeInfo& dtype = info_of(layout.spec.dtype);
  const bool is_values = layout.codes == CodeStorage::source_values || layout.codes == CodeStorage::cast_values;
  ValueLimit limit;
  limit.largest_scale = limit.clamped_scale = kInfinity;
  if (layout.codes == CodeStorage::ggml_rows) {
    const GgmlType type = *ggml_type_of(layout.components.front().dtype);
    if (type == GgmlType::bf16) limit.dtype = StorageDtype::BF16;
    // Block scales are float16, and no scale exceeds the values it scales.
    if (type != GgmlType::bf16 && type != GgmlType::f32 && type != GgmlType::mxfp4) limit.dtype = StorageDtype::F16;
    limit.largest = largest_of(limit.dtype);
    return limit;
  }
  if (layout.codes == CodeStorage::rows_block_float) {
    const BlockFloatFormat format = block_float_of(layout.spec.dtype);
    limit.largest = static_cast<float>(format.code_limit() * power_of_two(127 - format.fraction_bits()));
    return limit;
  }
  if (is_values && !layout.components.empty()) limit.dtype = plain_or_f32(layout.components.front().dtype);
  const bool is_scaled = !is_values && layout.stages.size() != 2;
  for (const Component& component : layout.components)
    if (is_scaled && component.role == Role::scale) limit.dtype = plain_or_f32(component.dtype);
  limit.largest = largest_of(limit.dtype);
  if (dtype.is_plain_cast() || dtype.is_block() || layout.stages.size() == 2) return limit;
  if (is_scaled)
    limit.largest_scale = largest_scale_of(limit.dtype, layout.spec.scale_format, limit.largest, reach_of(layout.spec));
  limit.clamped_scale = clamped_scale_of(layout.spec);
  limit.step = top_step_of(layout.spec);
  return limit;
}

std::string_view float_name_of(StorageDtype dtype) noexcept {
  if (dtype == StorageDtype::F32) return "float32";
  return info_of(dtype_of(dtype)).name;
}

}  // namespace wasmquant
