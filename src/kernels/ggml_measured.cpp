// Codes of blocks whose scales are known, and their error while the elements are in registers (ggml_stages.h). Order of
// additions: error_lanes.h; each pass over the runs takes the lanes of kErrorPerPass registers.
#include "kernels/dispatch.h"
#include "kernels/error_tree.h"
#include "kernels/ggml_stages.h"

namespace wasmquant::kernels {

template <bool is_rounded, bool has_minimum>
struct MeasuredCodes {
  template <class Arch>
  ErrorSums operator()(Arch, const float* x, size_t runs, const RunCoding& coding, const RunParameters& parameters,
                       uint8_t* codes) const noexcept {
    using F = simd::F<Arch>;
    using U = simd::U<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    static_assert(kExtentRun == 2 * kErrorLanes);
    const F bias = simd::constant<Arch>(coding.bias), high = simd::constant<Arch>(coding.high),
            center = simd::constant<Arch>(coding.center);
    const U sign = simd::constant<Arch>(0x80000000u), below_half = simd::constant<Arch>(0x3EFFFFFFu),
            low_byte = simd::constant<Arch>(0xFFu);
    const simd::NearestInt<Arch> nearest;
    ErrorRegisters<Arch> all;
    for (size_t first = 0; first < kErrorRegisters<Arch>; first += kErrorPerPass) {
      ErrorPass<Arch> pass;
      const float* from = x + first * kLanes;
      uint8_t* to = codes + first * kLanes;
      for (size_t run = 0; run < runs; ++run, from += kExtentRun, to += kExtentRun) {
        const F factor(parameters.factor[run]), scale(parameters.scale[run]), add(parameters.add[run]),
            minimum(parameters.minimum[run]);
        std::array<U, 4> q;
        for (size_t k = 0; k < 4; ++k) {
          const F original = simd::load<Arch>(from + k / 2 * kErrorLanes + k % 2 * kLanes);
          F whole, value;
          if constexpr (is_rounded) {
            // Halves away from zero: adding what is just below a half carries where a half would, and ties.
            const F position = original * factor;
            const U half = (simd::as_uint<Arch>(position) & sign) | below_half;
            whole = xsimd::trunc(position + simd::as_float<Arch>(half));
            value = whole * scale;
          } else {
            const F position = (has_minimum ? original + add : original) * factor;
            whole = simd::smaller<Arch>(simd::round<Arch>(RoundMethod::floor, position + bias), high);
            value = has_minimum ? whole * scale - minimum : (whole - center) * scale;
          }
          q[k] = nearest.bits(whole) & low_byte;
          pass.add(k % 2, original, value);
        }
        simd::store_apart<Arch>(simd::narrow_bytes<Arch>(q), to, to + kErrorLanes);
      }
      all.take(first, pass);
    }
    return all.sums(runs * kExtentRun);
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

ErrorSums measured_codes(const float* x, size_t runs, const RunCoding& coding, const RunParameters& parameters,
                         uint8_t* codes) noexcept {
  if (coding.is_rounded) return run<MeasuredCodes<true, false>>(x, runs, coding, parameters, codes);
  if (coding.has_minimum) return run<MeasuredCodes<false, true>>(x, runs, coding, parameters, codes);
  return run<MeasuredCodes<false, false>>(x, runs, coding, parameters, codes);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
