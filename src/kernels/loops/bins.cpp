// Histogram bins. Positions are float64 because bin edges must match numpy's.
#include "kernels/dispatch.h"
#include "kernels/reference/reference_search.h"

namespace wasmquant::kernels {

struct FindBins {
  template <class Arch>
  Binned operator()(Arch, std::span<const float> x, const Bins& rule, uint32_t* bins) const noexcept {
    using D = xsimd::batch<double, Arch>;
    using I = simd::I<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    const D low(rule.low), per_unit(rule.per_unit), first(0.0), last(static_cast<double>(rule.last));
    const simd::U<Arch> kept = simd::constant<Arch>(rule.of_magnitudes ? 0x7FFFFFFFu : 0xFFFFFFFFu);
    const I no_sign = simd::constant<Arch>(int32_t{0x7FFFFFFF}), nothing = simd::constant<Arch>(int32_t{0});
    const simd::U<Arch> one = simd::constant<Arch>(1u);
    I largest(0), zeros(0);
    size_t i = 0;
    for (; i + kLanes <= x.size(); i += kLanes) {
      const simd::F<Arch> v = simd::load<Arch>(x.data() + i);
      const I magnitude = simd::as_int<Arch>(v) & no_sign;
      largest = simd::max_int<Arch>(largest, magnitude);
      zeros = zeros + xsimd::bitwise_cast<int32_t>(simd::when<Arch>(magnitude == nothing, one));
      auto position = simd::widen<Arch>(simd::as_float<Arch>(simd::as_uint<Arch>(v) & kept));
      for (D& half : position) half = xsimd::min(xsimd::max((half - low) * per_unit, first), last);
      simd::truncate<Arch>(position).store_unaligned(reinterpret_cast<int32_t*>(bins + i));
    }
    Binned found = reference::find_bins(x.subspan(i), rule, bins + i);
    found.zeros += static_cast<size_t>(xsimd::reduce_add(zeros));
    found.all_finite &= simd::largest_lane<Arch>(largest) < 0x7F800000;
    return found;
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

Binned find_bins(std::span<const float> x, const Bins& rule, uint32_t* bins) noexcept {
  return run<FindBins>(x, rule, bins);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
