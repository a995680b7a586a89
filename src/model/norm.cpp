#include "model/norm.h"

#include <cmath>

namespace wasmquant::model {

void normalize(const Norm& norm, std::span<const float> weight, const float* x, size_t rows, float* y) noexcept {
  const size_t columns = weight.size();
  const float offset = norm.plus_one ? 1.0f : 0.0f;
  for (size_t row = 0; row < rows; ++row, x += columns, y += columns) {
    double even = 0, odd = 0;  // two chains of additions keep the adder busy
    for (size_t i = 0; i < columns; ++i) (i % 2 == 0 ? even : odd) += double{x[i]} * x[i];
    const double mean = (even + odd) / static_cast<double>(columns);
    const auto factor = static_cast<float>(1 / std::sqrt(mean + norm.epsilon));
    for (size_t i = 0; i < columns; ++i) y[i] = x[i] * factor * (weight[i] + offset);
  }
}

}  // namespace wasmquant::model
