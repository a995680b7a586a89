// The dense float32 linear algebra of second-order algorithms: product, Cholesky factor, triangular inverse.
// Row-major with a row stride in elements. The order of additions depends only on the depth of the product
// (kernels/matmul.h): results do not change with tiling, nor between native and WebAssembly. A product deeper than
// kProductDepth equals a sequence of products of that depth.
#pragma once
#include <cstddef>
#include <span>

#include "kernels/matmul.h"

namespace wasmquant {

using kernels::kProductDepth;

/// A read-only row-major matrix; `stride` elements from row to row.
struct ConstMatrix {
  const float* data;
  size_t stride;
};
/// A writable one.
struct Matrix {
  float* data;
  size_t stride;
};

/// c[i][j] += sign * sum_p a[p][i] * b[p][j]:  a [depth, rows], b [depth, columns], c [rows, columns]; sign is 1 or -1.
/// c does not overlap a or b.
void add_product(float sign, ConstMatrix a, ConstMatrix b, size_t depth, size_t rows, size_t columns,
                 Matrix c) noexcept;

/// c[i][j] += sign * sum_p a[p][i] * a[p][j] where j >= i; below the diagonal c is neither read nor written.
/// a [depth, n], c [n, n].
void add_symmetric_product(float sign, ConstMatrix a, size_t depth, size_t n, Matrix c) noexcept;

/// c[i][j] += sum_p a[p][i] * a[p][j] where j >= i, for the rows [first, end) only. a [depth, n], c [n, n].
void add_symmetric_rows(ConstMatrix a, size_t depth, size_t n, size_t first, size_t end, Matrix c) noexcept;

/// y[i] -= factor * x[i]. x and y do not overlap.
void subtract_scaled(std::span<float> y, float factor, const float* x) noexcept;

/// A = R R^T with R upper triangular, in place, from the upper triangle of A [n, n]; the strictly lower triangle is
/// neither read nor written. False if A is not positive definite in float32; the upper triangle is then undefined.
///
/// This order makes R^-1 =: U the upper Cholesky factor of the inverse, A^-1 = U^T U, without forming it.
bool factor_cholesky(std::span<float> a, size_t n) noexcept;

/// Columns [first, end) of R^-1 of an upper triangular R [n, n], in their place; other columns of the rows above `end` are
/// undefined, and those from `end` on are not read. The strictly lower triangle is zero; the diagonal has no zero. `first`
/// and `end` are multiples of kInvertedStep, or `end` is n. A column does not depend on the range that it is found in.
void invert_upper(std::span<float> r, size_t n, size_t first, size_t end) noexcept;
inline constexpr size_t kInvertedStep = 64;

}  // namespace wasmquant
