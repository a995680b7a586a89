// Values of lookup_nibbles: table entries times the scale of their block.
//   value = lookup[code] * scale;   scale = stored, or scale_lookup[stored] * scale_of_scales + scale_offset
// Each step rounds to float32. Source: bitsandbytes, backends/default/ops.py, dequantize_4bit, dequantize_blockwise.
#pragma once
#include <cstdint>
#include <span>

#include "checkpoint/layout/weight_layout.h"

namespace wasmquant {

/// For layouts whose scales cover granularity.block consecutive elements; the last block of the tensor may be short.
/// `slices`, parallel to components: from slice_to_read for the tile. `values`: one per element of the tile.
void lookup_values(const WeightLayout& layout, const TileRange& tile, std::span<const uint8_t* const> slices,
                   std::span<float> values) noexcept;

}  // namespace wasmquant
