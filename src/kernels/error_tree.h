// Error sums in registers, and their tree of halves (error_lanes.h).
#pragma once
#include <array>

#include "kernels/error_lanes.h"
#include "kernels/simd.h"

namespace wasmquant::kernels {

/// Registers needed for one sum of kErrorLanes lanes.
template <class Arch>
inline constexpr size_t kErrorRegisters = kErrorLanes / simd::lanes<Arch>;
/// Registers per pass; more sums do not fit into sixteen registers.
inline constexpr size_t kErrorPerPass = 2;

/// Sums of kErrorPerPass registers.
template <class Arch>
struct ErrorPass {
  using F = simd::F<Arch>;
  std::array<F, kErrorPerPass> signal, quantized, noise;
  F max_abs;
  simd::U<Arch> no_sign = simd::constant<Arch>(0x7FFFFFFFu);

  XSIMD_INLINE ErrorPass() noexcept {
    max_abs = F(0.0f);
    signal.fill(max_abs);
    quantized.fill(max_abs);
    noise.fill(max_abs);
  }
  XSIMD_INLINE void add(size_t k, const F& original, const F& value) noexcept {
    const F difference = original - value;
    signal[k] = signal[k] + original * original;
    quantized[k] = quantized[k] + value * value;
    noise[k] = noise[k] + difference * difference;
    max_abs = simd::larger<Arch>(max_abs, simd::as_float<Arch>(simd::as_uint<Arch>(difference) & no_sign));
  }
};

/// All lanes of one block, as the passes leave them.
template <class Arch>
struct ErrorRegisters {
  using F = simd::F<Arch>;
  std::array<F, kErrorRegisters<Arch>> signal, quantized, noise;
  F max_abs{0.0f};

  void take(size_t first, const ErrorPass<Arch>& pass) noexcept {
    for (size_t k = 0; k < kErrorPerPass; ++k) {
      signal[first + k] = pass.signal[k];
      quantized[first + k] = pass.quantized[k];
      noise[first + k] = pass.noise[k];
    }
    max_abs = simd::larger<Arch>(max_abs, pass.max_abs);
  }
  ErrorSums sums(size_t count) const noexcept {
    return {sum_of(signal), sum_of(quantized), sum_of(noise), xsimd::reduce_max(max_abs), count, 0, 0};
  }

 private:
  /// Adds whole registers first.
  static double sum_of(const std::array<F, kErrorRegisters<Arch>>& sums) noexcept {
    using D = xsimd::batch<double, Arch>;
    std::array<D, 2 * kErrorRegisters<Arch>> wide;
    for (size_t k = 0; k < kErrorRegisters<Arch>; ++k) {
      const auto halves = simd::widen<Arch>(sums[k]);
      wide[2 * k] = halves[0];
      wide[2 * k + 1] = halves[1];
    }
    for (size_t width = kErrorRegisters<Arch>; width > 0; width /= 2)
      for (size_t k = 0; k < width; ++k) wide[k] = wide[k] + wide[k + width];
    std::array<double, D::size> lane;
    wide[0].store_unaligned(lane.data());
    for (size_t width = D::size / 2; width > 0; width /= 2)
      for (size_t k = 0; k < width; ++k) lane[k] += lane[k + width];
    return lane[0];
  }
};

}  // namespace wasmquant::kernels
