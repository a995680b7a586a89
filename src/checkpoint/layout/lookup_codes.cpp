#include "checkpoint/layout/lookup_codes.h"

#include <cstring>

namespace wasmquant {
namespace {

float float_at(const uint8_t* bytes, uint64_t index) noexcept {
  float value;
  std::memcpy(&value, bytes + 4 * index, 4);
  return value;
}

const uint8_t* slice_with(const WeightLayout& layout, Role role, std::span<const uint8_t* const> slices) noexcept {
  for (size_t c = 0; c < layout.components.size(); ++c)
    if (layout.components[c].role == role) return slices[c];
  return nullptr;
}

}  // namespace

void lookup_values(const WeightLayout& layout, const TileRange& tile, std::span<const uint8_t* const> slices,
                   std::span<float> values) noexcept {
  const uint8_t* const codes = slice_with(layout, Role::codes, slices);
  const uint8_t* const scales = slice_with(layout, Role::scale, slices);
  const uint8_t* const scale_lookup = slice_with(layout, Role::scale_lookup, slices);
  const uint8_t* const scale_of_scales = slice_with(layout, Role::scale_of_scales, slices);
  float table[16];
  std::memcpy(table, slice_with(layout, Role::lookup, slices), sizeof table);
  const uint64_t block = layout.granularity.block, first = tile.begin * layout.columns / block;
  for (uint64_t begin = 0, i = 0; begin < values.size(); begin += block, ++i) {
    const uint64_t end = begin + block < values.size() ? begin + block : values.size();
    float scale;
    if (scale_lookup == nullptr) {
      scale = float_at(scales, i);
    } else {
      scale = float_at(scale_lookup, scales[i]) * float_at(scale_of_scales, (first + i) / layout.scale_block);
      scale += layout.scale_offset;
    }
    for (uint64_t k = begin; k < end; ++k)
      values[k] = table[k % 2 == 0 ? codes[k / 2] >> 4 : codes[k / 2] & 15] * scale;
  }
}

}  // namespace wasmquant
