// Storage of scales and biases: rounding to the dtype of a component, bytes of powers of two, and the second scale of NVFP4.
#include "checkpoint/layout/tile_scales.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/kernels.h"
#include "numeric/e8m0.h"
#include "numeric/half.h"

namespace wasmquant {
namespace {

constexpr float kSmallestE5m3 = 0x1p-17f;  // must be non-zero as a divisor
constexpr FloatFormat kE4m3 = float_format_of(Dtype::fp8_e4m3), kE5m3 = float_format_of(Dtype::fp8_e5m3);

// Scales in their component's dtype. Bytes: e4m3 under the second scale, else e8m0 or e5m3 by the spec.
struct ScaleStorage {
  StorageDtype dtype;
  ScaleFormat format;
  float second;  // as stored; readers divide by a reciprocal one, which defines the scale
  bool is_reciprocal;

  void store(float value, uint8_t* out) const noexcept {
    uint16_t bits;
    switch (dtype) {
      case StorageDtype::F32:
        std::memcpy(out, &value, 4);
        return;
      case StorageDtype::F8_E4M3:
      case StorageDtype::U8:
        if (dtype == StorageDtype::F8_E4M3 || format == ScaleFormat::e4m3) {
          const float part = is_reciprocal ? value * second : value / second;
          *out = static_cast<uint8_t>(encode(kE4m3, part, Overflow::saturate));
        } else {
          *out = format == ScaleFormat::e8m0 ? export_e8m0(value)
                                             : static_cast<uint8_t>(encode(kE5m3, value, Overflow::saturate));
        }
        return;
      default:
        (dtype == StorageDtype::BF16 ? kernels::narrow_bf16 : kernels::narrow_f16)({&value, 1}, &bits);
        std::memcpy(out, &bits, 2);
    }
  }
  float load(const uint8_t* in) const noexcept {
    float value;
    uint16_t bits;
    switch (dtype) {
      case StorageDtype::F32:
        std::memcpy(&value, in, 4);
        return value;
      case StorageDtype::F8_E8M0:
        return decode_e8m0(*in);
      case StorageDtype::F8_E4M3:
      case StorageDtype::U8:
        if (dtype == StorageDtype::F8_E4M3 || format == ScaleFormat::e4m3)
          return is_reciprocal ? decode(kE4m3, *in) / second : decode(kE4m3, *in) * second;
        return format == ScaleFormat::e8m0 ? decode_e8m0(*in) : decode(kE5m3, *in);
      default:
        std::memcpy(&bits, in, 2);
        (dtype == StorageDtype::BF16 ? kernels::widen_bf16 : kernels::widen_f16)({&bits, 1}, &value);
        return value;
    }
  }
};

}  // namespace

ScaleMatrix scale_matrix(const WeightLayout& layout, const TileRange& tile) noexcept {
  const uint64_t count = tile_scale_count(layout, tile);
  if (layout.codes == CodeStorage::rows_blocks) {
    const uint64_t rows = layout.scales_in_tiles() ? tile.count() : layout.rows, blocks = layout.stored_blocks();
    const uint64_t row_scales = count / std::max<uint64_t>(rows, 1);
    return {rows, blocks, false, row_scales, row_scales > 1 ? layout.granularity.block / layout.block : blocks};
  }
  if (!layout.scales_in_tiles()) return {1, count, false};
  if (layout.column_tiles()) return {count / layout.rows, layout.rows, true};
  return {tile.count(), count / std::max<uint64_t>(tile.count(), 1), false};
}

float stored_second(const WeightLayout& layout, float second_scale) noexcept {
  if (!layout.reciprocal_second_scale) return second_scale;
  return std::min(1.0f / second_scale, std::numeric_limits<float>::max());  // infinite for weights below 8e-36
}

float storable_scale(const WeightLayout& layout, float scale, float second_scale) noexcept {
  const ScaleFormat format = layout.spec.scale_format;
  for (const Component& component : layout.components) {
    if (component.role != Role::scale || component.dtype == StorageDtype::F32) continue;
    const ScaleStorage storage{component.dtype, format, stored_second(layout, second_scale),
                               layout.reciprocal_second_scale};
    uint8_t stored[sizeof(float)];
    storage.store(format == ScaleFormat::e5m3 ? std::max(scale, kSmallestE5m3) : scale, stored);
    float loaded = storage.load(stored);
    if (component.dtype == StorageDtype::F16 && format == ScaleFormat::float32 && std::fabs(scale) < 0x1p-14f)
      loaded = std::copysign(half_scale_of(std::fabs(scale)), scale);
    return format == ScaleFormat::float32 && loaded == 0 ? std::copysign(kScaleEpsilon, scale) : loaded;
  }
  return scale;
}

void pack_scales(const WeightLayout& layout, StorageDtype dtype, const ScaleMatrix& m, std::span<const QParams> q,
                 float second_scale, uint8_t* out) noexcept {
  const ScaleStorage storage{dtype, layout.spec.scale_format, stored_second(layout, second_scale),
                             layout.reciprocal_second_scale};
  for (uint64_t i = 0; i < m.count(); ++i) storage.store(q[m.internal(i)].scale, out + i * info_of(dtype).bits / 8);
}

void unpack_scales(const WeightLayout& layout, StorageDtype dtype, const ScaleMatrix& m, const uint8_t* in,
                   float stored_second_scale, std::span<QParams> q) noexcept {
  const ScaleStorage storage{dtype, layout.spec.scale_format, stored_second_scale, layout.reciprocal_second_scale};
  for (uint64_t i = 0; i < m.count(); ++i) q[m.internal(i)].scale = storage.load(in + i * info_of(dtype).bits / 8);
}

void pack_biases(StorageDtype dtype, const ScaleMatrix& m, std::span<const QParams> q, uint8_t* out) noexcept {
  const ScaleStorage storage{dtype, ScaleFormat::float32, 1.0f, false};
  for (uint64_t i = 0; i < m.count(); ++i)
    storage.store(q[m.internal(i)].zero_point, out + i * info_of(dtype).bits / 8);
}

QParams as_stored(const WeightLayout& layout, QParams q) noexcept {
  for (const Component& component : layout.components) {
    if (component.role != Role::scale && component.role != Role::bias) continue;
    const ScaleStorage storage{component.dtype, ScaleFormat::float32, 1.0f, false};
    float& number = component.role == Role::scale ? q.scale : q.zero_point;
    uint8_t stored[sizeof(float)];
    storage.store(number, stored);
    number = storage.load(stored);
  }
  return q;
}

void unpack_biases(StorageDtype dtype, const ScaleMatrix& m, const uint8_t* in, std::span<QParams> q) noexcept {
  const ScaleStorage storage{dtype, ScaleFormat::float32, 1.0f, false};
  for (uint64_t i = 0; i < m.count(); ++i) q[m.internal(i)].zero_point = storage.load(in + i * info_of(dtype).bits / 8);
}

}  // namespace wasmquant
