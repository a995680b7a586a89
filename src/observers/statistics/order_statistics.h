// Order statistics. The data is passed as a copy, which is reordered.
#pragma once
#include <cstddef>
#include <span>

namespace wasmquant {

/// The value of `rank` in the sorted data, 0 <= rank < x.size().
float value_of_rank(std::span<float> x, size_t rank) noexcept;

/// numpy.percentile: linear interpolation at position (n - 1) * percent / 100, in float64. x is not empty.
double interpolated_percentile(std::span<float> x, double percent) noexcept;

}  // namespace wasmquant
