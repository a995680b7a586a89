// Products of float32 matrices, the one routine behind layers, attention, Hessians and factorisations:
//   c[i][j] = (or +=, -=) sum_p a(i, p) * b(j, p)        a [rows, depth], b [columns, depth], c [rows, columns]
//
// Every element's additions have one order, which the depth alone decides: the terms of kProductDepth consecutive p
// are added up from zero, one after the other, and each such sum is added to c. Shape, tiling and instruction set do
// not change a bit, so rows may be computed in any portions.
//
// Packed tiles as in K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008); lanes hold
// columns, so that no sum runs across lanes.
#pragma once
#include <cstddef>
#include <cstdint>

namespace wasmquant::kernels {

/// Depth that is summed before it is added to memory.
inline constexpr size_t kProductDepth = 128;

/// A factor in memory, in elements: a(i, p) = data[i * step + p * depth_step]. One of the two steps is 1 where speed
/// counts. A layer's weight [out, in] as b: {w, in, 1}; a transposed matrix has its steps swapped.
struct Factor {
  const float* data;
  size_t step;
  size_t depth_step;
};

enum class Update : uint8_t { set, add, subtract };

/// Which elements of c are computed; the others are neither read nor written.
enum class Part : uint8_t { all, upper /* j >= i */ };

/// Floats of working memory that a product needs, whatever its size.
size_t matmul_workspace(size_t rows, size_t columns, size_t depth) noexcept;

/// `c_stride`: elements from row to row of c, which overlaps neither factor. `workspace`: matmul_workspace() floats,
/// or more. Depth 0 sets to zero or changes nothing.
void matmul(const Factor& a, const Factor& b, size_t depth, size_t rows, size_t columns, Update update, Part part,
            float* c, size_t c_stride, float* workspace) noexcept;

}  // namespace wasmquant::kernels
