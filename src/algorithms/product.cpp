// Products by packed tiles (K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008):
// strips of both factors are copied so that the innermost loop reads them in order. The loops are plain, for the
// compiler to vectorise: sixteen 128-bit registers hold a tile and its operands.
#include <algorithm>
#include <vector>

#include "algorithms/linear_algebra.h"

namespace wasmquant {
namespace {

constexpr size_t kTileRows = 4, kTileColumns = 8;
constexpr size_t kBlockRows = 128, kBlockColumns = 256;  // packed: 64 and 128 KiB, both in L2

size_t round_up(size_t n, size_t step) noexcept { return (n + step - 1) / step * step; }

// Columns [0, count) of m [depth, *] as strips of Width columns, each [depth][Width]; the last is filled with zeros.
template <size_t Width>
void pack(ConstMatrix m, size_t depth, size_t count, float* out) noexcept {
  for (size_t at = 0; at < count; at += Width) {
    const size_t width = std::min(Width, count - at);
    for (size_t p = 0; p < depth; ++p, out += Width) {
      const float* row = m.data + p * m.stride + at;
      if (width == Width) {
        for (size_t i = 0; i < Width; ++i) out[i] = row[i];
      } else {
        for (size_t i = 0; i < Width; ++i) out[i] = i < width ? row[i] : 0.0f;
      }
    }
  }
}

using Tile = float[kTileRows][kTileColumns];

void multiply_tile(const float* __restrict a, const float* __restrict b, size_t depth, Tile& tile) noexcept {
  Tile sum = {};
  for (size_t p = 0; p < depth; ++p, a += kTileRows, b += kTileColumns)
    for (size_t i = 0; i < kTileRows; ++i)
      for (size_t j = 0; j < kTileColumns; ++j) sum[i][j] += a[i] * b[j];
  for (size_t i = 0; i < kTileRows; ++i)
    for (size_t j = 0; j < kTileColumns; ++j) tile[i][j] = sum[i][j];
}

// The product with c's rows [0, rows) and columns [0, columns); with `upper`, only where column >= row.
void add_tiles(float sign, ConstMatrix a, ConstMatrix b, size_t depth, size_t rows, size_t columns, bool upper,
               Matrix c) noexcept {
  std::vector<float> packed(
      std::min(depth, kProductDepth) *
      (round_up(std::min(rows, kBlockRows), kTileRows) + round_up(std::min(columns, kBlockColumns), kTileColumns)));
  Tile tile;
  for (size_t p0 = 0; p0 < depth; p0 += kProductDepth) {
    const size_t deep = std::min(kProductDepth, depth - p0);
    for (size_t j0 = 0; j0 < columns; j0 += kBlockColumns) {
      const size_t j1 = std::min(j0 + kBlockColumns, columns);
      float* const packed_b = packed.data();
      float* const packed_a = packed_b + deep * round_up(j1 - j0, kTileColumns);
      pack<kTileColumns>({b.data + p0 * b.stride + j0, b.stride}, deep, j1 - j0, packed_b);
      for (size_t i0 = 0; i0 < (upper ? std::min(rows, j1) : rows); i0 += kBlockRows) {
        const size_t i1 = std::min(i0 + kBlockRows, rows);
        pack<kTileRows>({a.data + p0 * a.stride + i0, a.stride}, deep, i1 - i0, packed_a);
        for (size_t j = j0; j < j1; j += kTileColumns) {
          const size_t j_end = std::min(j + kTileColumns, j1);
          for (size_t i = i0; i < (upper ? std::min(i1, j_end) : i1); i += kTileRows) {
            multiply_tile(packed_a + (i - i0) * deep, packed_b + (j - j0) * deep, deep, tile);
            for (size_t row = i; row < std::min(i + kTileRows, i1); ++row)
              for (size_t column = upper ? std::max(row, j) : j; column < j_end; ++column)
                c.data[row * c.stride + column] += sign * tile[row - i][column - j];
          }
        }
      }
    }
  }
}

}  // namespace

void add_product(float sign, ConstMatrix a, ConstMatrix b, size_t depth, size_t rows, size_t columns,
                 Matrix c) noexcept {
  add_tiles(sign, a, b, depth, rows, columns, false, c);
}

void add_symmetric_product(float sign, ConstMatrix a, size_t depth, size_t n, Matrix c) noexcept {
  add_tiles(sign, a, a, depth, n, n, true, c);
}

void subtract_scaled(std::span<float> y, float factor, const float* x) noexcept {
  float* __restrict out = y.data();
  const float* __restrict in = x;
  for (size_t i = 0; i < y.size(); ++i) out[i] -= factor * in[i];
}

}  // namespace wasmquant
