// Blocked factorisations: plain loops inside a panel of rows or columns, products for the rest.
#include "algorithms/linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace wasmquant {
namespace {

constexpr size_t kPanel = kInvertedStep;  // rows or columns factored at a time

// The last columns [begin, end) of R, from packed = these columns of the remaining A, [end - begin][end]: a row per
// column.
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
void invert_upper(std::span<float> r, size_t n, size_t first, size_t end) noexcept {
  std::vector<float> packed(std::min(end, kPanel) * end);
  for (size_t bottom = end, begin; bottom > 0; bottom = begin) {
    begin = (bottom - 1) / kPanel * kPanel;
    const size_t height = bottom - begin, rest = end - bottom;
    invert_diagonal({r.data(), n}, begin, bottom);
    for (size_t i = begin; i < bottom; ++i) {
      float* const row = r.data() + i * n;
      for (size_t j = bottom; j < end; ++j) row[j] *= row[i];
      for (size_t q = i + 1; q < bottom; ++q) subtract_scaled({row + bottom, rest}, -row[q], r.data() + q * n + bottom);
    }
    const size_t left = std::max(first, bottom);
    for (size_t i = 0; i < height; ++i) {
      float* const row = r.data() + (begin + i) * n;
      for (size_t p = 0; p < rest; ++p) packed[p * height + i] = row[bottom + p];
      std::fill(row + left, row + std::max(left, end), 0.0f);
    }
    for (size_t p = 0; p < rest; p += kProductDepth) {  // V's rows begin at the diagonal
      const size_t corner = bottom + p, column = std::max(left, corner);
      add_product(-1, {packed.data() + p * height, height}, {r.data() + corner * n + column, n},
                  std::min(kProductDepth, rest - p), height, end - column, {r.data() + begin * n + column, n});
    }
  }
}

}  // namespace wasmquant
