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
  const double low = value_of_rank(x, below);
  if (below + 1 == x.size()) return low;
  const double high = *std::min_element(x.begin() + static_cast<ptrdiff_t>(below) + 1, x.end());
  // From the nearer end, as numpy does.
  const double part = position - static_cast<double>(below), distance = high - low;
  return part < 0.5 ? low + distance * part : high - distance * (1 - part);
}

}  // namespace wasmquant
