#pragma once
#include <vector>

namespace test_algorithms {

/// The sum of (X (Q - W)^T)^2: rows of all three have `columns` elements.
inline double output_error(const std::vector<float>& x, const std::vector<float>& w, const std::vector<float>& q,
                           size_t columns) {
  double sum = 0;
  for (size_t t = 0; t < x.size(); t += columns)
    for (size_t i = 0; i < w.size(); i += columns) {
      double y = 0;
      for (size_t j = 0; j < columns; ++j) y += double{x[t + j]} * (double{q[i + j]} - w[i + j]);
      sum += y * y;
    }
  return sum;
}

}  // namespace test_algorithms
