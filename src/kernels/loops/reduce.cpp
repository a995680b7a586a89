// Ranges of values. Non-finite values cost nothing to detect: without the sign bit they are the largest integers. The
// scalar oracle repeats the rare run that has one and skips them.
#include <algorithm>
#include <array>
#include <limits>

#include "kernels/dispatch.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels {

constexpr int32_t kInfinityBits = 0x7F800000;

/// Bits of the largest magnitude, NaN above infinity.
struct MaxMagnitude {
  template <class Arch>
  int32_t operator()(Arch, std::span<const float> x) const noexcept {
    using I = simd::I<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    const I no_sign = simd::constant<Arch>(int32_t{0x7FFFFFFF});
    std::array<I, 4> max = {I(0), I(0), I(0), I(0)};
    size_t i = 0;
    for (; i + simd::step<Arch> <= x.size(); i += simd::step<Arch>)
      for (size_t k = 0; k < 4; ++k)
        max[k] = simd::max_int<Arch>(max[k], simd::as_int<Arch>(simd::load<Arch>(x.data() + i + k * kLanes)) & no_sign);
    int32_t bits = simd::largest_lane<Arch>(
        simd::max_int<Arch>(simd::max_int<Arch>(max[0], max[1]), simd::max_int<Arch>(max[2], max[3])));
    for (; i < x.size(); ++i) {
      const int32_t magnitude = std::bit_cast<int32_t>(x[i]) & 0x7FFFFFFF;
      bits = magnitude > bits ? magnitude : bits;
    }
    return bits;
  }
};

/// Magnitudes of consecutive runs; returns the largest of all, as bits.
struct MaxMagnitudeOfRuns {
  template <class Arch>
  int32_t operator()(Arch arch, std::span<const float> x, size_t run, float* max) const noexcept {
    int32_t all = 0;
    for (size_t begin = 0; begin < x.size(); begin += run) {
      const int32_t bits = MaxMagnitude{}(arch, x.subspan(begin, std::min(run, x.size() - begin)));
      max[begin / run] = std::bit_cast<float>(bits);
      all = std::max(all, bits);
    }
    return all;
  }
};

struct ReduceExtent {
  template <class Arch>
  Extent operator()(Arch, std::span<const float> x) const noexcept {
    using F = simd::F<Arch>;
    using I = simd::I<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const I no_sign = simd::constant<Arch>(int32_t{0x7FFFFFFF});
    std::array<F, 2> min = {F(kInfinity), F(kInfinity)}, max = {F(-kInfinity), F(-kInfinity)};
    std::array<I, 2> magnitude = {I(0), I(0)};
    size_t i = 0;
    for (; i + simd::step<Arch> <= x.size(); i += simd::step<Arch>) {
      for (size_t k = 0; k < 4; ++k) {
        const F v = simd::load<Arch>(x.data() + i + k * kLanes);
        min[k % 2] = simd::smaller<Arch>(min[k % 2], v);
        max[k % 2] = simd::larger<Arch>(max[k % 2], v);
        magnitude[k % 2] = simd::max_int<Arch>(magnitude[k % 2], simd::as_int<Arch>(v) & no_sign);
      }
    }
    Extent e = reference::reduce_extent(x.subspan(i));
    e.min = std::min(e.min, xsimd::reduce_min(simd::smaller<Arch>(min[0], min[1])));
    e.max = std::max(e.max, xsimd::reduce_max(simd::larger<Arch>(max[0], max[1])));
    e.all_finite &= xsimd::reduce_max(simd::max_int<Arch>(magnitude[0], magnitude[1])) < kInfinityBits;
    return Extent{e.min + 0.0f, e.max + 0.0f, e.all_finite};
  }
};

struct AccumulateExtent {
  template <class Arch>
  bool operator()(Arch, std::span<const float> x, float* min, float* max) const noexcept {
    using F = simd::F<Arch>;
    using I = simd::I<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    const I no_sign = simd::constant<Arch>(int32_t{0x7FFFFFFF});
    const F nan = simd::constant<Arch>(std::numeric_limits<float>::quiet_NaN());
    const I infinity = simd::constant<Arch>(kInfinityBits);
    I magnitude(0);
    size_t i = 0;
    for (; i + kLanes <= x.size(); i += kLanes) {
      F v = simd::load<Arch>(x.data() + i);
      const I bits = simd::as_int<Arch>(v) & no_sign;
      magnitude = simd::max_int<Arch>(magnitude, bits);
      v = simd::as_float<Arch>(  // infinities become NaN too: both lose every comparison
          simd::select<Arch>(bits < infinity, simd::as_uint<Arch>(v), simd::as_uint<Arch>(nan)));
      simd::smaller<Arch>(simd::load<Arch>(min + i), v).store_unaligned(min + i);
      simd::larger<Arch>(simd::load<Arch>(max + i), v).store_unaligned(max + i);
    }
    const bool tail_is_finite = reference::accumulate_extent(x.subspan(i), min + i, max + i);
    return tail_is_finite && xsimd::reduce_max(magnitude) < kInfinityBits;
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

AbsMax reduce_absmax(std::span<const float> x) noexcept {
  const int32_t bits = run<MaxMagnitude>(x);
  return bits < kInfinityBits ? AbsMax{std::bit_cast<float>(bits), true} : reference::reduce_absmax(x);
}

bool reduce_absmax_runs(std::span<const float> x, size_t run, float* max) noexcept {
  if (kernels::run<MaxMagnitudeOfRuns>(x, run, max) < kInfinityBits) return true;
  return reference::reduce_absmax_runs(x, run, max);
}

Extent reduce_extent(std::span<const float> x) noexcept {
  const Extent e = run<ReduceExtent>(x);
  return e.all_finite ? e : reference::reduce_extent(x);
}

int64_t find_non_finite(std::span<const float> x) noexcept {
  return run<MaxMagnitude>(x) < kInfinityBits ? -1 : reference::find_non_finite(x);
}

bool accumulate_extent(std::span<const float> x, float* min, float* max) noexcept {
  return run<AccumulateExtent>(x, min, max);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
