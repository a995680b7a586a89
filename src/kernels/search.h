// Contracts of the loops behind searches for scales and ranges (observers). Otherwise as in kernels.h. Sums are float32
// in an order that does not depend on the architecture.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "numeric/rounding.h"

namespace wasmquant::kernels {

// ---- search_error.cpp

/// Grids of a search, one array per field. Grid values are scale * whole numbers in [low, high], |low| and |high| at
/// most 2^21 (codes minus a whole zero point).
struct SearchGrids {
  static constexpr size_t kStep = 16;  // count is a multiple of this
  const float *scale, *inverse, *low, *high;
  size_t count;
};
/// Elements summed before their sum is added to the total.
inline constexpr size_t kSearchBlock = 64;

/// errors[c] = sum of (x - y)^2, or of weights[i] * (x - y)^2 if weights are given;
/// y = round_half_even(clamp(x * inverse[c], low[c], high[c])) * scale[c], as in fake_quantize_int. x is finite.
/// Sums run from the first element to the last, in blocks of kSearchBlock.
void search_errors(std::span<const float> x, const float* weights, const SearchGrids& grids, float* errors) noexcept;

// ---- least_squares.cpp

/// Sums over w = weights[i], or 1 without weights; q = round_half_even(clamp(x * inverse, low, high)), d = x - q * scale.
struct LeastSquaresSums {
  double loss = 0;     // sum of w d^2
  double cross = 0;    // sum of w q x: for these codes, the scale of the least loss is cross / squares
  double squares = 0;  // sum of w q^2
};
/// One grid: whole numbers in [low, high], both at most 2^21 in magnitude (codes minus a whole zero point), times scale.
struct StepGrid {
  float scale, inverse, low, high;
};
/// x and the weights are finite, their products within float32. Element i goes to float32 sum i % 8 of a block of
/// kLeastSquaresBlock; those are added in float64.
inline constexpr size_t kLeastSquaresBlock = 1024;
LeastSquaresSums least_squares(std::span<const float> x, const float* weights, const StepGrid& grid) noexcept;

// ---- half_quadratic.cpp

/// A grid and a norm |d|^p, for one step of the half-quadratic method (Badri and Shaji 2023).
struct HalfQuadratic {
  float scale, inverse, zero_point;  // the zero point may be fractional
  float quant_min, quant_max;
  RoundMethod round;
  float exponent;  // p - 1, in [-1, 0)
  float shrink;    // a difference d shrinks by shrink * |d|^(p - 1), at most to 0
};
/// With q = clamp(round(x * inverse + zero_point)), d = x - (q - zero_point) * scale, and t = x - shrunk d:
struct HalfQuadraticSums {
  double loss = 0;     // sum of |d|^p
  double zero = 0;     // sum of q - t * inverse: the best zero point is its mean
  double cross = 0;    // sum of (q - zero_point) * t
  double squares = 0;  // sum of (q - zero_point)^2: the best scale is cross / squares
};
/// x and all |d| are finite and below 2^10. Powers have a relative error below 2^-20. Element i goes to float32 sum
/// i % 8 of a block of kHalfQuadraticBlock; those are added in float64.
inline constexpr size_t kHalfQuadraticBlock = 1024;
HalfQuadraticSums half_quadratic(std::span<const float> x, const HalfQuadratic& at) noexcept;

// ---- bins.cpp

/// Bins of equal width: v goes to bin floor((v - low) * per_unit) in float64, clamped to 0..last.
struct Bins {
  double low, per_unit;
  uint32_t last;       // below 2^31
  bool of_magnitudes;  // v is |x|
};
/// bins[i] is the bin of x[i]. If not all x are finite, the bins are invalid.
struct Binned {
  size_t zeros;  // elements that are +0 or -0
  bool all_finite;
};
Binned find_bins(std::span<const float> x, const Bins& rule, uint32_t* bins) noexcept;

}  // namespace wasmquant::kernels
