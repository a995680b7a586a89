#include "observers/statistics/moments.h"

#include <algorithm>
#include <cmath>

namespace wasmquant {

// Terms of at most 1 rounded to 42 binary places: 512 of them add up in float64 without rounding. Adding 1.5 * 2^10
// leaves 42 places.
void Moments::add(std::span<const float> x, double unit) noexcept {
  constexpr size_t kBlock = 512;
  constexpr double kShifter = 1.5 * 0x1p10;
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    double sum_positive = 0, sum_negative = 0, sum_squares = 0;
    for (const float value : x.subspan(begin, std::min(kBlock, x.size() - begin))) {
      if (!std::isfinite(value)) continue;
      const double v = std::clamp(static_cast<double>(value) * unit, -1.0, 1.0);
      const double magnitude = (std::fabs(v) + kShifter) - kShifter;
      (v < 0 ? sum_negative : sum_positive) += magnitude;
      sum_squares += (v * v + kShifter) - kShifter;
      ++count;
    }
    positive.add(sum_positive);
    negative.add(sum_negative);
    squares.add(sum_squares);
  }
}

void Moments::add(const Moments& other) noexcept {
  positive.add(other.positive);
  negative.add(other.negative);
  squares.add(other.squares);
  count += other.count;
}

double Moments::standard_deviation() const noexcept {
  return std::sqrt(std::max(value_of(squares) / size() - mean() * mean(), 0.0));
}

}  // namespace wasmquant
