// Eight floats, one per sub-block: one register on AVX2, two 128-bit registers elsewhere. The pair also hides the
// latency of sums whose order of additions is fixed.
#pragma once
#include <utility>

#include "kernels/simd.h"

namespace wasmquant::kernels {

/// Eight lanes; operators work lane by lane.
template <class Arch>
struct Eight {
  using F = simd::F<Arch>;
  using Mask = xsimd::batch_bool<float, Arch>;
  static constexpr size_t kParts = 8 / simd::lanes<Arch>;

  std::array<F, kParts> part;

  static XSIMD_INLINE Eight load(const float* x) noexcept {
    return make([x](size_t k) { return simd::load<Arch>(x + k * simd::lanes<Arch>); });
  }
  static XSIMD_INLINE Eight all(float v) noexcept {
    const F one = simd::constant<Arch>(v);
    return make([&one](size_t) { return one; });
  }
  XSIMD_INLINE void store(float* y) const noexcept {
    for (size_t k = 0; k < kParts; ++k) part[k].store_unaligned(y + k * simd::lanes<Arch>);
  }

  /// Part k is function(k). Unrolled by hand so that the parts stay in registers at any optimisation level.
  template <class Function>
  static XSIMD_INLINE Eight make(const Function& function) noexcept {
    return make(function, std::make_index_sequence<kParts>());
  }
  template <class Function, size_t... k>
  static XSIMD_INLINE Eight make(const Function& function, std::index_sequence<k...>) noexcept {
    return {{function(k)...}};
  }

  friend XSIMD_INLINE Eight operator+(const Eight& a, const Eight& b) noexcept {
    return make([&](size_t k) { return a.part[k] + b.part[k]; });
  }
  friend XSIMD_INLINE Eight operator-(const Eight& a, const Eight& b) noexcept {
    return make([&](size_t k) { return a.part[k] - b.part[k]; });
  }
  friend XSIMD_INLINE Eight operator*(const Eight& a, const Eight& b) noexcept {
    return make([&](size_t k) { return a.part[k] * b.part[k]; });
  }
  friend XSIMD_INLINE Eight operator/(const Eight& a, const Eight& b) noexcept {
    return make([&](size_t k) { return a.part[k] / b.part[k]; });
  }
  XSIMD_INLINE Eight magnitude() const noexcept {
    const simd::U<Arch> no_sign = simd::constant<Arch>(0x7FFFFFFFu);
    return make([&](size_t k) { return simd::as_float<Arch>(simd::as_uint<Arch>(part[k]) & no_sign); });
  }
  XSIMD_INLINE Eight negated() const noexcept {
    const simd::U<Arch> sign = simd::constant<Arch>(0x80000000u);
    return make([&](size_t k) { return simd::as_float<Arch>(simd::as_uint<Arch>(part[k]) ^ sign); });
  }
  XSIMD_INLINE Eight root() const noexcept {
    return make([&](size_t k) { return xsimd::sqrt(part[k]); });
  }
  /// NaN becomes low.
  XSIMD_INLINE Eight clamped(const Eight& low, const Eight& high) const noexcept {
    return make([&](size_t k) { return simd::smaller<Arch>(simd::larger<Arch>(low.part[k], part[k]), high.part[k]); });
  }
};

/// A condition per lane.
template <class Arch>
struct EightMask {
  using W = Eight<Arch>;
  std::array<typename W::Mask, W::kParts> part;

  template <class Function>
  static XSIMD_INLINE EightMask make(const Function& function) noexcept {
    return make(function, std::make_index_sequence<W::kParts>());
  }
  template <class Function, size_t... k>
  static XSIMD_INLINE EightMask make(const Function& function, std::index_sequence<k...>) noexcept {
    return {{function(k)...}};
  }
  friend XSIMD_INLINE EightMask operator&(const EightMask& a, const EightMask& b) noexcept {
    return make([&](size_t k) { return a.part[k] & b.part[k]; });
  }
  XSIMD_INLINE bool any() const noexcept {
    bool found = false;
    for (size_t k = 0; k < W::kParts; ++k) found |= xsimd::any(part[k]);
    return found;
  }
  XSIMD_INLINE bool all() const noexcept {
    bool every = true;
    for (size_t k = 0; k < W::kParts; ++k) every &= xsimd::all(part[k]);
    return every;
  }
  /// Per lane: holds ? a : b.
  XSIMD_INLINE W choose(const W& a, const W& b) const noexcept {
    return W::make([&](size_t k) { return xsimd::select(part[k], a.part[k], b.part[k]); });
  }
};

template <class Arch>
XSIMD_INLINE EightMask<Arch> operator<(const Eight<Arch>& a, const Eight<Arch>& b) noexcept {
  return EightMask<Arch>::make([&](size_t k) { return a.part[k] < b.part[k]; });
}
template <class Arch>
XSIMD_INLINE EightMask<Arch> operator>(const Eight<Arch>& a, const Eight<Arch>& b) noexcept {
  return EightMask<Arch>::make([&](size_t k) { return a.part[k] > b.part[k]; });
}
template <class Arch>
XSIMD_INLINE EightMask<Arch> operator<=(const Eight<Arch>& a, const Eight<Arch>& b) noexcept {
  return EightMask<Arch>::make([&](size_t k) { return a.part[k] <= b.part[k]; });
}
template <class Arch>
XSIMD_INLINE EightMask<Arch> operator==(const Eight<Arch>& a, const Eight<Arch>& b) noexcept {
  return EightMask<Arch>::make([&](size_t k) { return a.part[k] == b.part[k]; });
}
template <class Arch>
XSIMD_INLINE EightMask<Arch> operator!=(const Eight<Arch>& a, const Eight<Arch>& b) noexcept {
  return EightMask<Arch>::make([&](size_t k) { return a.part[k] != b.part[k]; });
}

/// Rounds to a whole number like ggml's nearest_int: the low 23 bits of v + 1.5 * 2^23, counted from -2^22. Exact
/// nearest-even for |v| <= 2^22 - 1. The result is clamped to low..high, which are whole.
template <class Arch>
XSIMD_INLINE simd::F<Arch> nearest_wrapped(const simd::F<Arch>& v, const simd::F<Arch>& low,
                                           const simd::F<Arch>& high) noexcept {
  const simd::F<Arch> shifter = simd::constant<Arch>(12582912.0f);
  const simd::U<Arch> mantissa = simd::constant<Arch>(0x7FFFFFu), exponent = simd::constant<Arch>(0x4B000000u);
  const simd::F<Arch> whole = simd::as_float<Arch>((simd::as_uint<Arch>(v + shifter) & mantissa) | exponent);
  return simd::clamp<Arch>(whole - shifter, low, high);
}

/// out[i] = element i of each of the eight sub-blocks at x, x + length, ...; length is a multiple of 8.
template <class Arch>
XSIMD_INLINE void load_lanes(const float* x, size_t length, Eight<Arch>* out) noexcept {
  using F = simd::F<Arch>;
  constexpr size_t kLanes = simd::lanes<Arch>;
  for (size_t k = 0; k < Eight<Arch>::kParts; ++k) {
    const float* from = x + k * kLanes * length;
    for (size_t i = 0; i < length; i += kLanes) {
      // A square transposes by interleaving its upper with its lower half log2(side) times.
      std::array<F, kLanes> square, next;
      for (size_t r = 0; r < kLanes; ++r) square[r] = simd::load<Arch>(from + r * length + i);
      for (size_t side = kLanes; side > 1; side /= 2) {
        for (size_t r = 0; r < kLanes / 2; ++r) {
          next[2 * r] = xsimd::zip_lo(square[r], square[r + kLanes / 2]);
          next[2 * r + 1] = xsimd::zip_hi(square[r], square[r + kLanes / 2]);
        }
        square = next;
      }
      for (size_t r = 0; r < kLanes; ++r) out[i + r].part[k] = square[r];
    }
  }
}

}  // namespace wasmquant::kernels
