// Scalar oracles of the search kernels: errors of grids, half-quadratic and least-squares sums, bins.
#include "kernels/reference/reference_search.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/power_series.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels::reference {
namespace {

// a^exponent like the kernel: 2^(exponent * log2(a)).
float power_of(float a, float exponent) noexcept {
  using namespace power_series;
  a = a < kSmallest ? kSmallest : a;
  const auto bits = std::bit_cast<int32_t>(a);
  const int32_t e = (bits - kSqrtHalfBits) >> 23;
  const float m = std::bit_cast<float>(bits - (e << 23));
  const float t = (m - 1.0f) / (m + 1.0f), square = t * t;
  float series = kLog2[0];
  for (size_t k = 1; k < kLog2.size(); ++k) series = series * square + kLog2[k];
  const float y = (static_cast<float>(e) + series * t) * exponent;
  const float shifted = y + kShifter, rest = y - (shifted - kShifter);
  float value = kExp2[0];
  for (size_t k = 1; k < kExp2.size(); ++k) value = value * rest + kExp2[k];
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) + (std::bit_cast<uint32_t>(shifted) << 23));
}

double tree(const std::array<float, kSearchLanes>& lanes) noexcept {
  std::array<double, kSearchLanes> sum;
  std::copy(lanes.begin(), lanes.end(), sum.begin());
  for (size_t width = kSearchLanes / 2; width > 0; width /= 2)
    for (size_t j = 0; j < width; ++j) sum[j] += sum[j + width];
  return sum[0];
}

}  // namespace

void search_errors(std::span<const float> x, const float* weights, const SearchGrids& grids, float* errors) noexcept {
  for (size_t c = 0; c < grids.count; ++c) {
    errors[c] = 0;
    for (size_t begin = 0; begin < x.size(); begin += kSearchBlock) {
      float sum = 0;
      for (size_t i = begin; i < std::min(begin + kSearchBlock, x.size()); ++i) {
        const float code = std::nearbyint(clamp(x[i] * grids.inverse[c], grids.low[c], grids.high[c]));
        const float difference = x[i] - code * grids.scale[c], squared = difference * difference;
        sum += weights != nullptr ? squared * weights[i] : squared;
      }
      errors[c] += sum;
    }
  }
}

void add_half_quadratic(std::span<const float> x, size_t begin, const HalfQuadratic& at,
                        HalfQuadraticLanes& lanes) noexcept {
  for (size_t i = begin; i < x.size(); ++i) {
    const size_t lane = i % kSearchLanes;
    const float q = apply_rounding(at.round, clamp(x[i] * at.inverse + at.zero_point, at.quant_min, at.quant_max));
    const float steps = q - at.zero_point, difference = x[i] - steps * at.scale;
    const float magnitude = std::fabs(difference), power = power_of(magnitude, at.exponent);
    const float shrunk = magnitude - power * at.shrink;
    const float target = x[i] - std::copysign(shrunk > 0.0f ? shrunk : 0.0f, difference);
    lanes.loss[lane] += magnitude * power;
    lanes.zero[lane] += q - target * at.inverse;
    lanes.cross[lane] += steps * target;
    lanes.squares[lane] += steps * steps;
  }
}

void append(const HalfQuadraticLanes& lanes, HalfQuadraticSums& sums) noexcept {
  sums.loss += tree(lanes.loss);
  sums.zero += tree(lanes.zero);
  sums.cross += tree(lanes.cross);
  sums.squares += tree(lanes.squares);
}

HalfQuadraticSums half_quadratic(std::span<const float> x, const HalfQuadratic& at) noexcept {
  HalfQuadraticSums sums;
  for (size_t begin = 0; begin < x.size(); begin += kHalfQuadraticBlock) {
    HalfQuadraticLanes lanes;
    add_half_quadratic(x.subspan(begin, std::min(kHalfQuadraticBlock, x.size() - begin)), 0, at, lanes);
    append(lanes, sums);
  }
  return sums;
}

void add_least_squares(std::span<const float> x, const float* weights, size_t begin, const StepGrid& grid,
                       LeastSquaresLanes& lanes) noexcept {
  for (size_t i = begin; i < x.size(); ++i) {
    const size_t lane = i % kSearchLanes;
    const float q = std::nearbyint(clamp(x[i] * grid.inverse, grid.low, grid.high));
    const float difference = x[i] - q * grid.scale, weight = weights != nullptr ? weights[i] : 1.0f;
    lanes.loss[lane] += difference * difference * weight;
    lanes.cross[lane] += q * x[i] * weight;
    lanes.squares[lane] += q * q * weight;
  }
}

void append(const LeastSquaresLanes& lanes, LeastSquaresSums& sums) noexcept {
  sums.loss += tree(lanes.loss);
  sums.cross += tree(lanes.cross);
  sums.squares += tree(lanes.squares);
}

LeastSquaresSums least_squares(std::span<const float> x, const float* weights, const StepGrid& grid) noexcept {
  LeastSquaresSums sums;
  for (size_t begin = 0; begin < x.size(); begin += kLeastSquaresBlock) {
    LeastSquaresLanes lanes;
    add_least_squares(x.subspan(begin, std::min(kLeastSquaresBlock, x.size() - begin)),
                      weights != nullptr ? weights + begin : nullptr, 0, grid, lanes);
    append(lanes, sums);
  }
  return sums;
}

Binned find_bins(std::span<const float> x, const Bins& rule, uint32_t* bins) noexcept {
  Binned found{0, true};
  for (size_t i = 0; i < x.size(); ++i) {
    found.zeros += x[i] == 0 ? 1 : 0;
    bins[i] = 0;
    if (!std::isfinite(x[i])) {
      found.all_finite = false;
      continue;
    }
    const double v = rule.of_magnitudes ? std::fabs(x[i]) : x[i];
    bins[i] = static_cast<uint32_t>(std::clamp((v - rule.low) * rule.per_unit, 0.0, static_cast<double>(rule.last)));
  }
  return found;
}

}  // namespace wasmquant::kernels::reference
