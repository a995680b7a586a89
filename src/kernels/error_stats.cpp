// Error sums between values and the values of their codes. Order of additions: error_lanes.h.
#include <algorithm>
#include <array>

#include "kernels/dispatch.h"
#include "kernels/error_lanes.h"
#include "kernels/reference.h"

namespace wasmquant::kernels {

/// The sums of one block.
struct SumErrorBlock {
  template <class Arch>
  ErrorSums operator()(Arch, std::span<const float> x, const float* y) const noexcept {
    using F = simd::F<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>, kRegisters = kErrorLanes / kLanes;
    constexpr size_t kPerPass = 2;  // more sums at once do not fit into sixteen registers
    const size_t whole = x.size() - x.size() % kErrorLanes;
    std::array<float, kErrorLanes> last_x{}, last_y{};  // zeros add nothing
    for (size_t i = whole; i < x.size(); ++i) {
      last_x[i - whole] = x[i];
      last_y[i - whole] = y[i];
    }
    const simd::U<Arch> no_sign = simd::constant<Arch>(0x7FFFFFFFu);
    const F zero(0.0f);
    std::array<F, kRegisters> signal, quantized, noise;
    F max_abs = zero;
    for (size_t first = 0; first < kRegisters; first += kPerPass) {
      std::array<F, kPerPass> sum_x = {zero, zero}, sum_y = {zero, zero}, sum_d = {zero, zero}, max = {zero, zero};
      const auto add = [&](const float* from_x, const float* from_y) {
        for (size_t k = 0; k < kPerPass; ++k) {
          const size_t at = (first + k) * kLanes;
          const F original = simd::load<Arch>(from_x + at), value = simd::load<Arch>(from_y + at);
          const F difference = original - value;
          sum_x[k] = sum_x[k] + original * original;
          sum_y[k] = sum_y[k] + value * value;
          sum_d[k] = sum_d[k] + difference * difference;
          max[k] = simd::larger<Arch>(max[k], simd::as_float<Arch>(simd::as_uint<Arch>(difference) & no_sign));
        }
      };
      for (size_t i = 0; i < whole; i += kErrorLanes) add(x.data() + i, y + i);
      if (whole < x.size()) add(last_x.data(), last_y.data());
      for (size_t k = 0; k < kPerPass; ++k) {
        signal[first + k] = sum_x[k];
        quantized[first + k] = sum_y[k];
        noise[first + k] = sum_d[k];
        max_abs = simd::larger<Arch>(max_abs, max[k]);
      }
    }
    return {sum_of<Arch>(signal), sum_of<Arch>(quantized), sum_of<Arch>(noise), xsimd::reduce_max(max_abs), x.size()};
  }

 private:
  /// The tree of halves, whole registers first.
  template <class Arch, size_t Registers>
  static double sum_of(const std::array<simd::F<Arch>, Registers>& sums) noexcept {
    using D = xsimd::batch<double, Arch>;
    std::array<D, 2 * Registers> wide;
    for (size_t k = 0; k < Registers; ++k) {
      const auto halves = simd::widen<Arch>(sums[k]);
      wide[2 * k] = halves[0];
      wide[2 * k + 1] = halves[1];
    }
    for (size_t width = Registers; width > 0; width /= 2)
      for (size_t k = 0; k < width; ++k) wide[k] = wide[k] + wide[k + width];
    std::array<double, D::size> lane;
    wide[0].store_unaligned(lane.data());
    for (size_t width = D::size / 2; width > 0; width /= 2)
      for (size_t k = 0; k < width; ++k) lane[k] += lane[k + width];
    return lane[0];
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

/// At most kErrorBlock elements.
static ErrorSums error_of_block(std::span<const float> x, const float* y) noexcept {
  const ErrorSums sums = run<SumErrorBlock>(x, y);
  return is_in_range(sums) ? sums : reference::error_in_float64(x, y);
}

ErrorSums error_between(std::span<const float> x, const float* y) noexcept {
  ErrorSums total;
  for (size_t begin = 0; begin < x.size(); begin += kErrorBlock)
    total.append(error_of_block(x.subspan(begin, std::min(kErrorBlock, x.size() - begin)), y + begin));
  return total;
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
