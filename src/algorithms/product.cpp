#include <vector>

#include "algorithms/linear_algebra.h"

namespace wasmquant {

using kernels::Region;
using kernels::Update;

void add_product(float sign, ConstMatrix a, ConstMatrix b, size_t depth, size_t rows, size_t columns,
                 Matrix c) noexcept {
  std::vector<float> workspace(kernels::matmul_workspace(rows, columns, depth));
  kernels::matmul({a.data, 1, a.stride}, {b.data, 1, b.stride}, depth, rows, columns,
                  sign > 0 ? Update::add : Update::subtract, Region::all, c.data, c.stride, workspace.data());
}

void add_symmetric_product(float sign, ConstMatrix a, size_t depth, size_t n, Matrix c) noexcept {
  std::vector<float> workspace(kernels::matmul_workspace(n, n, depth));
  const kernels::Factor factor{a.data, 1, a.stride};
  kernels::matmul(factor, factor, depth, n, n, sign > 0 ? Update::add : Update::subtract, Region::upper, c.data,
                  c.stride, workspace.data());
}

void add_symmetric_rows(ConstMatrix a, size_t depth, size_t n, size_t first, size_t end, Matrix c) noexcept {
  if (first == end) return;
  std::vector<float> workspace(kernels::matmul_workspace(end - first, n - first, depth));
  const kernels::Factor factor{a.data + first, 1, a.stride};
  kernels::matmul(factor, factor, depth, end - first, n - first, Update::add, Region::upper,
                  c.data + first * c.stride + first, c.stride, workspace.data());
}

void subtract_scaled(std::span<float> y, float factor, const float* x) noexcept {
  float* __restrict out = y.data();
  const float* __restrict in = x;
  for (size_t i = 0; i < y.size(); ++i) out[i] -= factor * in[i];
}

}  // namespace wasmquant
