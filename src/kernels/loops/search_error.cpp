// Squared errors of many grids over one group of elements. A register holds the same constant of several grids;
// elements are processed one by one, so neither order of additions nor tails depend on the register width.
#include <array>

#include "kernels/dispatch.h"
#include "kernels/search.h"

namespace wasmquant::kernels {

template <bool Weighted>
struct SearchErrors {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, const float* weights, const SearchGrids& grids,
                  float* errors) const noexcept {
    using F = simd::F<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>, kRegisters = 2;  // with their constants they fill sixteen registers
    static_assert(SearchGrids::kStep % (kRegisters * kLanes) == 0);
    const simd::NearestInt<Arch> nearest;
    for (size_t at = 0; at < grids.count; at += kRegisters * kLanes) {
      std::array<F, kRegisters> scale, inverse, low, high, total;
      for (size_t k = 0; k < kRegisters; ++k) {
        const size_t first = at + k * kLanes;
        scale[k] = simd::load<Arch>(grids.scale + first);
        inverse[k] = simd::load<Arch>(grids.inverse + first);
        low[k] = simd::load<Arch>(grids.low + first);
        high[k] = simd::load<Arch>(grids.high + first);
        total[k] = F(0.0f);
      }
      for (size_t begin = 0; begin < x.size(); begin += kSearchBlock) {
        const size_t end = x.size() - begin < kSearchBlock ? x.size() : begin + kSearchBlock;
        std::array<F, kRegisters> sum = {F(0.0f), F(0.0f)};
        for (size_t i = begin; i < end; ++i) {
          const F v(x[i]);
          for (size_t k = 0; k < kRegisters; ++k) {
            const F difference = v - nearest.whole(simd::clamp<Arch>(v * inverse[k], low[k], high[k])) * scale[k];
            if constexpr (Weighted)
              sum[k] = sum[k] + difference * difference * F(weights[i]);
            else
              sum[k] = sum[k] + difference * difference;
          }
        }
        for (size_t k = 0; k < kRegisters; ++k) total[k] = total[k] + sum[k];
      }
      for (size_t k = 0; k < kRegisters; ++k) total[k].store_unaligned(errors + at + k * kLanes);
    }
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

void search_errors(std::span<const float> x, const float* weights, const SearchGrids& grids, float* errors) noexcept {
  if (weights != nullptr)
    run<SearchErrors<true>>(x, weights, grids, errors);
  else
    run<SearchErrors<false>>(x, weights, grids, errors);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
