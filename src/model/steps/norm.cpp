#include "model/steps/norm.h"

#include <cmath>

namespace wasmquant::model {
namespace {

void normalize_row(const Norm& norm, std::span<const float> weight, const float* x, size_t columns, float* y) noexcept {
  const float offset = norm.plus_one ? 1.0f : 0.0f;
  double even = 0, odd = 0;  // two chains of additions keep the adder busy
  for (size_t i = 0; i < columns; ++i) (i % 2 == 0 ? even : odd) += double{x[i]} * x[i];
  const double mean = (even + odd) / static_cast<double>(columns);
  const auto factor = static_cast<float>(1 / std::sqrt(mean + norm.epsilon));
  if (weight.empty())
    for (size_t i = 0; i < columns; ++i) y[i] = x[i] * factor;
  else
    for (size_t i = 0; i < columns; ++i) y[i] = x[i] * factor * (weight[i] + offset);
}

void center_row(const Norm& norm, std::span<const float> weight, std::span<const float> bias, const float* x,
                size_t columns, float* y) noexcept {
  const float offset = norm.plus_one ? 1.0f : 0.0f;
  double sum = 0, squares = 0;
  for (size_t i = 0; i < columns; ++i) sum += double{x[i]};
  const double mean = sum / static_cast<double>(columns);
  for (size_t i = 0; i < columns; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(columns) + norm.epsilon);
  for (size_t i = 0; i < columns; ++i) {
    y[i] = static_cast<float>((x[i] - mean) * factor);
    if (!weight.empty()) y[i] *= weight[i] + offset;
    if (!bias.empty()) y[i] += bias[i];
  }
}

}  // namespace

void normalize(const Norm& norm, std::span<const float> weight, std::span<const float> bias, const float* x,
               size_t rows, size_t columns, float* y) noexcept {
  for (size_t row = 0; row < rows; ++row, x += columns, y += columns)
    norm.centers ? center_row(norm, weight, bias, x, columns, y) : normalize_row(norm, weight, x, columns, y);
}

}  // namespace wasmquant::model
