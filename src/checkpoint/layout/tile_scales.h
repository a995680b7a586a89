// Scales of a tile in the order and the dtype of their component.
#pragma once
#include <cstdint>
#include <span>

#include "checkpoint/layout/weight_layout.h"

namespace wasmquant {

/// The scale matrix as stored: row tiles [lines, groups], column tiles transposed to [groups, rows].
struct ScaleMatrix {
  uint64_t rows, columns;
  bool transposed;
  // rows_blocks: a row has `row_scales` scales (0: all rows have one), each stored `repeats` times.
  uint64_t row_scales = 0, repeats = 0;
  uint64_t count() const noexcept { return rows * columns; }
  // Index in internal order of the element at index `stored`.
  uint64_t internal(uint64_t stored) const noexcept {
    if (repeats != 0) return stored / columns * row_scales + stored % columns / repeats;
    return transposed ? (stored % columns) * rows + stored / columns : stored;
  }
};
/// The matrix of a tile's scales.
ScaleMatrix scale_matrix(const WeightLayout& layout, const TileRange& tile) noexcept;

/// The second scale as stored: some readers divide by it.
float stored_second(const WeightLayout& layout, float second_scale) noexcept;

/// Writes the tile's scales in `dtype`.
void pack_scales(const WeightLayout& layout, StorageDtype dtype, const ScaleMatrix& m, std::span<const QParams> q,
                 float second_scale, uint8_t* out) noexcept;
/// `stored_second_scale`: from stored_second.
void unpack_scales(const WeightLayout& layout, StorageDtype dtype, const ScaleMatrix& m, const uint8_t* in,
                   float stored_second_scale, std::span<QParams> q) noexcept;
/// Writes zero points that are biases (biased_codes.h) in `dtype`, and reads them.
void pack_biases(StorageDtype dtype, const ScaleMatrix& m, std::span<const QParams> q, uint8_t* out) noexcept;
void unpack_biases(StorageDtype dtype, const ScaleMatrix& m, const uint8_t* in, std::span<QParams> q) noexcept;
/// A float32 scale and its bias, rounded to the dtypes of their components.
QParams as_stored(const WeightLayout& layout, QParams q) noexcept;

}  // namespace wasmquant
