// Pairwise float32 sums as in numpy (torch nearly agrees): up to 128 terms in eight interleaved sums.
#pragma once
#include <span>

namespace wasmquant {

/// The sum of x.
float pairwise_sum(std::span<const float> x) noexcept;

}  // namespace wasmquant
