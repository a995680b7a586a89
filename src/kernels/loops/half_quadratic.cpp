// One step of the half-quadratic method over a group of elements: its loss, and sums for the next zero point and scale.
#include <algorithm>

#include "kernels/dispatch.h"
#include "kernels/power_series.h"
#include "kernels/reference/reference_search.h"

namespace wasmquant::kernels {

/// The sums of one block.
struct HalfQuadraticBlock {
  template <class Arch>
  reference::HalfQuadraticLanes operator()(Arch, std::span<const float> x, const HalfQuadratic& at) const noexcept {
    using F = simd::F<Arch>;
    constexpr size_t kStep = reference::kSearchLanes, kLanes = simd::lanes<Arch>, kRegisters = kStep / kLanes;
    const F scale(at.scale), inverse(at.inverse), zero_point(at.zero_point), low(at.quant_min), high(at.quant_max);
    const F exponent(at.exponent), shrink(at.shrink), nothing(0.0f);
    const simd::U<Arch> sign = simd::constant<Arch>(0x80000000u);
    std::array<F, kRegisters> loss, zero, cross, squares;
    loss.fill(nothing);
    zero.fill(nothing);
    cross.fill(nothing);
    squares.fill(nothing);
    const size_t whole = x.size() - x.size() % kStep;
    for (size_t i = 0; i < whole; i += kStep) {
      for (size_t k = 0; k < kRegisters; ++k) {
        const F v = simd::load<Arch>(x.data() + i + k * kLanes);
        const F q = simd::round<Arch>(at.round, simd::clamp<Arch>(v * inverse + zero_point, low, high));
        const F steps = q - zero_point, difference = v - steps * scale;
        const simd::U<Arch> bits = simd::as_uint<Arch>(difference);
        const F magnitude = simd::as_float<Arch>(bits & ~sign), power = power_of<Arch>(magnitude, exponent);
        const F shrunk = simd::larger<Arch>(nothing, magnitude - power * shrink);
        const F target = v - simd::as_float<Arch>(simd::as_uint<Arch>(shrunk) | (bits & sign));
        loss[k] = loss[k] + magnitude * power;
        zero[k] = zero[k] + (q - target * inverse);
        cross[k] = cross[k] + steps * target;
        squares[k] = squares[k] + steps * steps;
      }
    }
    reference::HalfQuadraticLanes lanes;
    for (size_t k = 0; k < kRegisters; ++k) {
      loss[k].store_unaligned(lanes.loss.data() + k * kLanes);
      zero[k].store_unaligned(lanes.zero.data() + k * kLanes);
      cross[k].store_unaligned(lanes.cross.data() + k * kLanes);
      squares[k].store_unaligned(lanes.squares.data() + k * kLanes);
    }
    if (whole < x.size()) reference::add_half_quadratic(x, whole, at, lanes);
    return lanes;
  }

 private:
  template <class Arch>
  static XSIMD_INLINE simd::F<Arch> power_of(const simd::F<Arch>& v, const simd::F<Arch>& exponent) noexcept {
    using namespace power_series;
    using F = simd::F<Arch>;
    using I = simd::I<Arch>;
    const F one = simd::constant<Arch>(1.0f), shifter = simd::constant<Arch>(kShifter);
    const I bits = simd::as_int<Arch>(simd::larger<Arch>(v, simd::constant<Arch>(kSmallest)));
    const I e = (bits - simd::constant<Arch>(kSqrtHalfBits)) >> 23;
    const F m = xsimd::bitwise_cast<float>(bits - (e << 23));
    const F t = (m - one) / (m + one), square = t * t;
    F series = simd::constant<Arch>(kLog2[0]);
    for (size_t k = 1; k < kLog2.size(); ++k) series = series * square + simd::constant<Arch>(kLog2[k]);
    const F y = (xsimd::to_float(e) + series * t) * exponent;
    const F shifted = y + shifter, rest = y - (shifted - shifter);
    F value = simd::constant<Arch>(kExp2[0]);
    for (size_t k = 1; k < kExp2.size(); ++k) value = value * rest + simd::constant<Arch>(kExp2[k]);
    return simd::as_float<Arch>(simd::as_uint<Arch>(value) + (simd::as_uint<Arch>(shifted) << 23));
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

HalfQuadraticSums half_quadratic(std::span<const float> x, const HalfQuadratic& at) noexcept {
  HalfQuadraticSums sums;
  for (size_t begin = 0; begin < x.size(); begin += kHalfQuadraticBlock)
    reference::append(run<HalfQuadraticBlock>(x.subspan(begin, std::min(kHalfQuadraticBlock, x.size() - begin)), at),
                      sums);
  return sums;
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
