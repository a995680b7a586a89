// Values of lookup_nibbles: numbers of a table, times the scale of their block.
//   value = lookup[code] * scale;   scale = stored, or scale_lookup[stored] * scale_of_scales + scale_offset
// Each product and sum is rounded to float32. Source: bitsandbytes, backends/default/ops.py, dequantize_4bit and
// dequantize_blockwise.
#pragma once
#include <cstdint>
#include <span>

#include "checkpoint/layout/weight_layout.h"

namespace wasmquant {

/// Of a layout whose scales are of granularity.block consecutive elements; the last block of the tensor may be short.
/// `slices`, parallel to components: as slice_to_read has them for the tile. `values`: as many as the tile has
/// elements.
void lookup_values(const WeightLayout& layout, const TileRange& tile, std::span<const uint8_t* const> slices,
                   std::span<float> values) noexcept;

}  // namespace wasmquant
