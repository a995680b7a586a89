// Packs a tile's zero points by ZeroPointStorage.
#pragma once
#include <cstdint>
#include <span>

#include "checkpoint/layout/tile_scales.h"

namespace wasmquant {

/// `m`: the tile's scale matrix, whose order zero points share.
void pack_zero_points(const WeightLayout& layout, const ScaleMatrix& m, std::span<const QParams> q,
                      uint8_t* out) noexcept;
/// The reverse.
void unpack_zero_points(const WeightLayout& layout, const ScaleMatrix& m, const uint8_t* in,
                        std::span<QParams> q) noexcept;

}  // namespace wasmquant
