// Products of float32 matrices, used by layers, attention, Hessians and factorisations:
//   c[i][j] = (or +=, -=) sum_p a(i, p) * b(j, p)        a [rows, depth], b [columns, depth], c [rows, columns]
//
// The order of additions depends only on the depth: the terms of kProductDepth consecutive p are summed from zero, one
// after the other, and each such sum is added to c. Shape, tiling and instruction set do not change a bit, so rows may
// be computed in any batches.
//
// Packed tiles as in K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008); lanes hold
// columns, so that no sum runs across lanes.
#pragma once
#include <cstddef>
#include <cstdint>

namespace wasmquant::kernels {

/// Depth summed before it is added to memory.
inline constexpr size_t kProductDepth = 128;

/// A factor in memory, in elements: a(i, p) = data[i * step + p * depth_step]. One of the two steps should be 1 for
/// speed. A layer's weight [out, in] as b: {w, in, 1}; a transposed matrix has its steps exchanged.
struct Factor {
  const float* data;
  size_t step;
  size_t depth_step;
};

/// How the product is combined with c.
enum class Update : uint8_t { set, add, subtract };

/// Which elements of c are computed; the others are neither read nor written.
enum class Region : uint8_t { all, upper /* j >= i */ };

/// Floats of working memory that a product needs.
size_t matmul_workspace(size_t rows, size_t columns, size_t depth) noexcept;

/// `c_stride`: elements from row to row of c, which overlaps neither factor. `workspace`: at least matmul_workspace()
/// floats. Depth 0 sets c to zero (set) or leaves it unchanged.
void matmul(const Factor& a, const Factor& b, size_t depth, size_t rows, size_t columns, Update update, Region region,
            float* c, size_t c_stride, float* workspace) noexcept;

/// Columns whose numbers lie next to each other in a packed factor.
inline constexpr size_t kPackedColumns = 32;

/// Floats of a factor [columns, depth] that is packed for products of single rows: strips of kPackedColumns columns, each [depth,
/// kPackedColumns], zero padded.
inline size_t packed_size(size_t columns, size_t depth) noexcept {
  return (columns + kPackedColumns - 1) / kPackedColumns * kPackedColumns * depth;
}
void pack_columns(const Factor& b, size_t depth, size_t columns, float* packed) noexcept;

/// c[j] = sum_p a[p] * b(j, p), to the bit as matmul() sets it. Nothing is packed meanwhile, which is most of the time that one row
/// takes otherwise.
void multiply_row(const float* a, const float* packed, size_t depth, size_t columns, float* c) noexcept;

}  // namespace wasmquant::kernels
