// The order of additions of error sums, the same on every arch: within a block of 1024 elements, element i goes to
// float32 sum i % 16; the 16 sums are then added in float64 as a tree of halves (j and j + 8, j + 4, j + 2, j + 1).
#pragma once
#include <cstddef>

#include "kernels/kernels.h"

namespace wasmquant::kernels {

/// Elements per block, and float32 sums of a block.
inline constexpr size_t kErrorBlock = 1024;
inline constexpr size_t kErrorLanes = 16;

/// Whether the float32 sums of a block are reliable: no infinity or NaN, no overflow, no squares lost to underflow.
/// Zero noise is reliable when no difference was seen.
bool is_in_range(const ErrorSums& block) noexcept;

}  // namespace wasmquant::kernels
