// Scalar oracles of search.h; see reference.h.
#pragma once
#include "kernels/search.h"

namespace wasmquant::kernels::reference {

void search_errors(std::span<const float> x, const float* weights, const SearchGrids& grids, float* errors) noexcept;
HalfQuadraticSums half_quadratic(std::span<const float> x, const HalfQuadratic& at) noexcept;
Binned find_bins(std::span<const float> x, const Bins& rule, uint32_t* bins) noexcept;

inline constexpr size_t kHalfQuadraticLanes = 8;
/// Interleaved sums of a block: element i in [begin, x.size()) is added to sum i % 8.
struct HalfQuadraticLanes {
  std::array<float, kHalfQuadraticLanes> loss{}, zero{}, cross{}, squares{};
};
void add_half_quadratic(std::span<const float> x, size_t begin, const HalfQuadratic& at,
                        HalfQuadraticLanes& lanes) noexcept;
/// Adds the sums of a block as a tree of halves: j and j + 4, j + 2, j + 1.
void append(const HalfQuadraticLanes& lanes, HalfQuadraticSums& sums) noexcept;

}  // namespace wasmquant::kernels::reference
