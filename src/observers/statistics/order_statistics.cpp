#include "observers/statistics/order_statistics.h"

#include <algorithm>
#include <cmath>

namespace wasmquant {

float value_of_rank(std::span<float> x, size_t rank) noexcept {
  std::nth_element(x.begin(), x.begin() + static_cast<ptrdiff_t>(rank), x.end());
  return x[rank];
}

double interpolated_percentile(std::span<float> x, double percent) noexcept {
  const double position = static_cast<double>(x.size() - 1) * (percent / 100);
  const auto below = std::min(static_cast<size_t>(std::floor(position)), x.size() - 1);
  const float low = value_of_rank(x, below);
  if (below + 1 == x.size()) return low;
  const float high = *std::min_element(x.begin() + static_cast<ptrdiff_t>(below) + 1, x.end());
  // From the nearer end, and the distance in float32, as numpy does.
  const double part = position - static_cast<double>(below), distance = static_cast<double>(high - low);
  return part < 0.5 ? static_cast<double>(low) + distance * part : static_cast<double>(high) - distance * (1 - part);
}

}  // namespace wasmquant
