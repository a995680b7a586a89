// Codes of a tile to the bytes of their component, and back: one byte a code in C order on this side, on the other what
// CodeStorage says. Not for blocks that hold their scales themselves, GGUF rows and values that stay as they are.
#pragma once
#include <cstdint>
#include <span>

#include "checkpoint/layout/weight_layout.h"

namespace wasmquant {

/// `scratch`: as many bytes as the tile has codes. `qparams` of the tile: blocks are padded with their zero points.
void pack_codes(const WeightLayout& layout, const TileRange& tile, const uint8_t* codes,
                std::span<const QParams> qparams, uint8_t* scratch, uint8_t* out) noexcept;
void unpack_codes(const WeightLayout& layout, const TileRange& tile, const uint8_t* in, uint8_t* scratch,
                  uint8_t* codes) noexcept;

}  // namespace wasmquant
