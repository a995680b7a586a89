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

void center_and_normalize(double epsilon, std::span<const float> weight, std::span<const float> bias, float* x,
                          size_t rows) noexcept {
  const size_t columns = weight.size();
  for (size_t row = 0; row < rows; ++row, x += columns) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < columns; ++i) sum += double{x[i]};
    const double mean = sum / static_cast<double>(columns);
    for (size_t i = 0; i < columns; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(columns) + epsilon);
    for (size_t i = 0; i < columns; ++i) x[i] = static_cast<float>((x[i] - mean) * factor) * weight[i] + bias[i];
  }
}

}  // namespace wasmquant::model
