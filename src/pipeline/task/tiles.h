// Tiles of a tensor: what is read for one, what is written of it, and the units over which errors are summed.
#pragma once
#include <cstdint>
#include <span>

#include "checkpoint/layout/weight_layout.h"
#include "core/list.h"
#include "kernels/kernels.h"

namespace wasmquant {

/// Values processed at a time: input, codes and scratch stay in the L1 cache.
inline constexpr uint64_t kBlockElements = 8192;

/// `rows` pieces of `row_bytes` bytes, `stride` bytes apart from `begin` of the file on, stored in a row at `pointer`.
struct TileRead {
  uint32_t part = 0;  // component; 0 for a source tensor
  uint32_t file = 0;
  uint64_t begin = 0, row_bytes = 0, stride = 0, rows = 0;
  uint8_t* pointer = nullptr;
};

/// Output bytes of a tile and their place in a file.
struct TileWrite {
  uint32_t file = 0;
  uint64_t offset = 0;
  const uint8_t* pointer = nullptr;
  uint64_t bytes = 0;
};

/// Of one tile.
struct TileResult {
  List<TileWrite> writes;
  std::span<const kernels::ErrorSums> sums;  // one per unit; empty for copies
};

/// Lines of one unit, over which sums are taken; tiles are whole units.
uint64_t unit_lines_of(const WeightLayout& layout) noexcept;

/// The fewest lines of `layout` that make whole lines of `source`, the same tensor as codes; all lines if no fewer do.
uint64_t whole_source_lines(const WeightLayout& layout, const WeightLayout& source) noexcept;
/// Lines of `source` with the elements of `lines` lines of `layout`, a multiple of the above or all.
uint64_t source_lines(const WeightLayout& layout, uint64_t lines, const WeightLayout& source) noexcept;

}  // namespace wasmquant
