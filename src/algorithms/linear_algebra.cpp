// Products by packed tiles (K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008):
// strips of both factors are copied so that the innermost loop reads them in order; factorisations are blocked around
// it. The loops are plain, for the compiler to vectorise: sixteen 128-bit registers hold a tile and its operands.
#include "algorithms/linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace wasmquant {
namespace {

constexpr size_t kTileRows = 4, kTileColumns = 8;
constexpr size_t kBlockRows = 128, kBlockColumns = 256;  // packed: 64 and 128 KiB, both in L2
constexpr size_t kPanel = 64;                            // rows or columns factored at a time

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

// The last columns [begin, end) of R, from packed = the same columns of what is left of A, [end - begin][end]: one row
// of `packed` per column.
bool factor_panel(float* packed, size_t begin, size_t end) noexcept {
  for (size_t k = end; k-- > begin;) {
    float* const column = packed + (k - begin) * end;
    if (!(column[k] > 0) || !std::isfinite(column[k])) return false;
    const float root = std::sqrt(column[k]);
    column[k] = root;
    for (size_t i = 0; i < k; ++i) column[i] /= root;
    for (size_t left = begin; left < k; ++left)
      subtract_scaled({packed + (left - begin) * end, left + 1}, column[left], column);
  }
  return true;
}

// Rows [begin, end) of the inverse within the columns [begin, end).
void invert_diagonal(Matrix r, size_t begin, size_t end) noexcept {
  float row[kPanel];
  for (size_t i = end; i-- > begin;) {
    float* const out = r.data + i * r.stride;
    std::copy(out + i, out + end, row);
    std::fill(out + i + 1, out + end, 0.0f);
    for (size_t p = i + 1; p < end; ++p) subtract_scaled({out + p, end - p}, row[p - i], r.data + p * r.stride + p);
    out[i] = 1.0f / row[0];
    for (size_t j = i + 1; j < end; ++j) out[j] *= out[i];
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

bool factor_cholesky(std::span<float> a, size_t n) noexcept {
  std::vector<float> packed(std::min(n, kPanel) * n);
  for (size_t end = n, begin; end > 0; end = begin) {
    begin = (end - 1) / kPanel * kPanel;
    for (size_t i = 0; i < end; ++i)
      for (size_t k = std::max(i, begin); k < end; ++k) packed[(k - begin) * end + i] = a[i * n + k];
    if (!factor_panel(packed.data(), begin, end)) return false;
    for (size_t i = 0; i < end; ++i)
      for (size_t k = std::max(i, begin); k < end; ++k) a[i * n + k] = packed[(k - begin) * end + i];
    add_symmetric_product(-1, {packed.data(), end}, end - begin, begin, {a.data(), n});
  }
  return true;
}

// By block rows I from the last:  V_II = R_II^-1,  V_I,rest = -(V_II R_I,rest) V_rest,rest.
void invert_upper(std::span<float> r, size_t n) noexcept {
  std::vector<float> packed(std::min(n, kPanel) * n);
  for (size_t end = n, begin; end > 0; end = begin) {
    begin = (end - 1) / kPanel * kPanel;
    const size_t height = end - begin, rest = n - end;
    invert_diagonal({r.data(), n}, begin, end);
    for (size_t i = begin; i < end; ++i) {
      float* const row = r.data() + i * n;
      for (size_t j = end; j < n; ++j) row[j] *= row[i];
      for (size_t q = i + 1; q < end; ++q) subtract_scaled({row + end, rest}, -row[q], r.data() + q * n + end);
    }
    for (size_t i = 0; i < height; ++i) {
      float* const row = r.data() + (begin + i) * n + end;
      for (size_t p = 0; p < rest; ++p) packed[p * height + i] = row[p];
      std::fill(row, row + rest, 0.0f);
    }
    for (size_t p = 0; p < rest; p += kProductDepth) {  // V's rows begin at the diagonal
      const size_t corner = end + p;
      add_product(-1, {packed.data() + p * height, height}, {r.data() + corner * n + corner, n},
                  std::min(kProductDepth, rest - p), height, rest - p, {r.data() + begin * n + corner, n});
    }
  }
}

}  // namespace wasmquant
