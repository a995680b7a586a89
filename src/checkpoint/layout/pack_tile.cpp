// Executes a WeightLayout on one tile: codes and scales to the bytes of its components, and back.
#include <cstring>

#include "checkpoint/layout/tile_codes.h"
#include "checkpoint/layout/tile_scales.h"
#include "checkpoint/layout/tile_zero_points.h"
#include "checkpoint/layout/weight_layout.h"

namespace wasmquant {

void pack_tile(const WeightLayout& layout, const TileRange& tile, const uint8_t* codes,
               std::span<const QParams> qparams, float second_scale, uint8_t* scratch,
               std::span<uint8_t* const> slices) noexcept {
  const ScaleMatrix scales = scale_matrix(layout, tile);
  for (size_t c = 0; c < layout.components.size(); ++c) {
    const Component& component = layout.components[c];
    const Slice slice = slice_of(layout, component, tile);
    if (slice.bytes == 0) continue;
    switch (component.role) {
      case Role::codes:
        pack_codes(layout, tile, codes, qparams, scratch, slices[c]);
        break;
      case Role::scale:
        pack_scales(layout, component.dtype, scales, qparams, second_scale, slices[c]);
        break;
      case Role::second_scale: {
        const float stored = stored_second(layout, second_scale);
        std::memcpy(slices[c], &stored, 4);
        break;
      }
      case Role::zero_point:
        pack_zero_points(layout, scales, qparams, slices[c]);
        break;
      case Role::bias:
        pack_biases(component.dtype, scales, qparams, slices[c]);
        break;
      case Role::column_group:
        for (uint64_t column = 0; column < layout.columns; ++column) {
          const auto group = static_cast<uint32_t>(column / layout.granularity.block);
          std::memcpy(slices[c] + 4 * column, &group, 4);
        }
        break;
      default:  // known in advance, or read only
        break;
    }
  }
}

void unpack_tile(const WeightLayout& layout, const TileRange& tile, std::span<const uint8_t* const> slices,
                 uint8_t* scratch, uint8_t* codes, std::span<QParams> qparams) noexcept {
  const ScaleMatrix scales = scale_matrix(layout, tile);
  float second = 1.0f;
  for (size_t c = 0; c < layout.components.size(); ++c) {
    if (layout.components[c].role != Role::second_scale) continue;
    std::memcpy(&second, slices[c], 4);
  }
  for (size_t c = 0; c < layout.components.size(); ++c) {
    const Component& component = layout.components[c];
    switch (component.role) {
      case Role::codes:
        unpack_codes(layout, tile, slices[c], scratch, codes);
        break;
      case Role::scale:
        unpack_scales(layout, component.dtype, scales, slices[c], second, qparams);
        break;
      case Role::zero_point:
        unpack_zero_points(layout, scales, slices[c], qparams);
        break;
      case Role::bias:
        unpack_biases(component.dtype, scales, slices[c], qparams);
        break;
      default:
        break;
    }
  }
}

void unpack_indexed_tile(const WeightLayout& layout, const TileRange& tile, std::span<const uint8_t* const> slices,
                         uint8_t* scratch, uint8_t* codes, std::span<QParams> qparams) noexcept {
  const ScaleMatrix scales = scale_matrix(layout, {0, layout.lines()});
  for (size_t c = 0; c < layout.components.size(); ++c) {
    const Component& component = layout.components[c];
    if (component.role == Role::codes) unpack_codes(layout, tile, slices[c], scratch, codes);
    if (component.role == Role::scale) unpack_scales(layout, component.dtype, scales, slices[c], 1.0f, qparams);
    if (component.role == Role::zero_point) unpack_zero_points(layout, scales, slices[c], qparams);
  }
}

}  // namespace wasmquant
