// Values at places of the sorted data. The data comes as a copy whose order is spent.
#pragma once
#include <cstddef>
#include <span>

namespace wasmquant {

/// The value that has `rank` smaller or equal ones before it, 0 <= rank < x.size().
float value_of_rank(std::span<float> x, size_t rank) noexcept;

/// numpy.percentile: at position (n - 1) * percent / 100, between two values linearly, in float64. x is not empty.
double interpolated_percentile(std::span<float> x, double percent) noexcept;

}  // namespace wasmquant
