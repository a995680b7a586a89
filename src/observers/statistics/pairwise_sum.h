// Sums in float32 by halves, as numpy has them and torch nearly: up to 128 terms by eight sums side by side.
#pragma once
#include <span>

namespace wasmquant {

float pairwise_sum(std::span<const float> x) noexcept;

}  // namespace wasmquant
