// Scalar oracles of search.h; see reference.h.
#pragma once
#include "kernels/search.h"

namespace wasmquant::kernels::reference {

void search_errors(std::span<const float> x, const float* weights, const SearchGrids& grids, float* errors) noexcept;
HalfQuadraticSums half_quadratic(std::span<const float> x, const HalfQuadratic& at) noexcept;
LeastSquaresSums least_squares(std::span<const float> x, const float* weights, const StepGrid& grid) noexcept;
Binned find_bins(std::span<const float> x, const Bins& rule, uint32_t* bins) noexcept;

/// Interleaved sums of a block.
inline constexpr size_t kSearchLanes = 8;
struct LeastSquaresLanes {
  std::array<float, kSearchLanes> loss{}, cross{}, squares{};
};
/// Elements [begin, x.size()) are added to sum i % 8.
void add_least_squares(std::span<const float> x, const float* weights, size_t begin, const StepGrid& grid,
                       LeastSquaresLanes& lanes) noexcept;
/// Adds the sums of a block as a tree of halves: j and j + 4, j + 2, j + 1.
void append(const LeastSquaresLanes& lanes, LeastSquaresSums& sums) noexcept;

/// Interleaved sums of a block: element i in [begin, x.size()) is added to sum i % 8.
struct HalfQuadraticLanes {
  std::array<float, kSearchLanes> loss{}, zero{}, cross{}, squares{};
};
void add_half_quadratic(std::span<const float> x, size_t begin, const HalfQuadratic& at,
                        HalfQuadraticLanes& lanes) noexcept;
void append(const HalfQuadraticLanes& lanes, HalfQuadraticSums& sums) noexcept;

}  // namespace wasmquant::kernels::reference
