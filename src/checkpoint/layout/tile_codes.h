// Converts a tile's codes, one byte each in C order, to the bytes of their component, and back (CodeStorage). Not for
// blocks that contain their scales, GGUF rows and unquantized values.
#pragma once
#include <cstdint>
#include <span>

#include "checkpoint/layout/weight_layout.h"

namespace wasmquant {

/// `scratch`: one byte per code of the tile. `qparams` of the tile: their zero points pad blocks.
void pack_codes(const WeightLayout& layout, const TileRange& tile, const uint8_t* codes,
                std::span<const QParams> qparams, uint8_t* scratch, uint8_t* out) noexcept;
/// The reverse.
void unpack_codes(const WeightLayout& layout, const TileRange& tile, const uint8_t* in, uint8_t* scratch,
                  uint8_t* codes) noexcept;

}  // namespace wasmquant
