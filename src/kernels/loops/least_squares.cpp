// Loss of one grid over a group of elements, and sums for the scale that fits its codes best.
#include <algorithm>

#include "kernels/dispatch.h"
#include "kernels/reference/reference_search.h"

namespace wasmquant::kernels {

/// The sums of one block.
template <bool Weighted>
struct LeastSquaresBlock {
  template <class Arch>
  reference::LeastSquaresLanes operator()(Arch, std::span<const float> x, const float* weights,
                                          const StepGrid& grid) const noexcept {
    using F = simd::F<Arch>;
    constexpr size_t kStep = reference::kSearchLanes, kLanes = simd::lanes<Arch>, kRegisters = kStep / kLanes;
    const F scale(grid.scale), inverse(grid.inverse), low(grid.low), high(grid.high);
    const simd::NearestInt<Arch> nearest;
    std::array<F, kRegisters> loss, cross, squares;
    loss.fill(F(0.0f));
    cross.fill(F(0.0f));
    squares.fill(F(0.0f));
    const size_t whole = x.size() - x.size() % kStep;
    for (size_t i = 0; i < whole; i += kStep)
      for (size_t k = 0; k < kRegisters; ++k) {
        const F v = simd::load<Arch>(x.data() + i + k * kLanes);
        const F q = nearest.whole(simd::clamp<Arch>(v * inverse, low, high)), difference = v - q * scale;
        F of_loss = difference * difference, of_cross = q * v, of_squares = q * q;
        if constexpr (Weighted) {
          const F weight = simd::load<Arch>(weights + i + k * kLanes);
          of_loss = of_loss * weight;
          of_cross = of_cross * weight;
          of_squares = of_squares * weight;
        }
        loss[k] = loss[k] + of_loss;
        cross[k] = cross[k] + of_cross;
        squares[k] = squares[k] + of_squares;
      }
    reference::LeastSquaresLanes lanes;
    for (size_t k = 0; k < kRegisters; ++k) {
      loss[k].store_unaligned(lanes.loss.data() + k * kLanes);
      cross[k].store_unaligned(lanes.cross.data() + k * kLanes);
      squares[k].store_unaligned(lanes.squares.data() + k * kLanes);
    }
    if (whole < x.size()) reference::add_least_squares(x, weights, whole, grid, lanes);
    return lanes;
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

LeastSquaresSums least_squares(std::span<const float> x, const float* weights, const StepGrid& grid) noexcept {
  LeastSquaresSums sums;
  for (size_t begin = 0; begin < x.size(); begin += kLeastSquaresBlock) {
    const std::span<const float> block = x.subspan(begin, std::min(kLeastSquaresBlock, x.size() - begin));
    if (weights != nullptr)
      reference::append(run<LeastSquaresBlock<true>>(block, weights + begin, grid), sums);
    else
      reference::append(run<LeastSquaresBlock<false>>(block, weights, grid), sums);
  }
  return sums;
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
