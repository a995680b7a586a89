// Codes of blocks whose scales are known, with their error measured while the elements are in registers
// (ggml_stages.h). Each pass over the runs takes the lanes of kErrorPerPass registers (error_lanes.h).
#include <cstring>
#include <limits>

#include "kernels/dispatch.h"
#include "kernels/error_tree.h"
#include "kernels/ggml_stages.h"

namespace wasmquant::kernels {

template <bool is_rounded, bool has_minimum, RunPacking packing>
struct MeasuredCodes {
  template <class Arch>
  ErrorSums operator()(Arch, const float* x, size_t runs, const RunCoding& coding, const RunParameters& parameters,
                       const RunBytes& target) const noexcept {
    using F = simd::F<Arch>;
    using U = simd::U<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    static_assert(kExtentRun == 2 * kErrorLanes && kErrorPerPass == 2);
    const F bias = simd::constant<Arch>(coding.bias), high = simd::constant<Arch>(coding.high),
            center = simd::constant<Arch>(coding.center);
    const U sign = simd::constant<Arch>(0x80000000u), below_half = simd::constant<Arch>(0x3EFFFFFFu),
            low_byte = simd::constant<Arch>(0xFFu), nibble = simd::constant<Arch>(15u);
    const F fourth_bits = simd::constant<Arch>(15.0f);
    const simd::NearestInt<Arch> nearest;
    ErrorRegisters<Arch> all;
    uint32_t fifth_bits[kErrorBlock / kExtentRun] = {};
    for (size_t first = 0; first < kErrorRegisters<Arch>; first += kErrorPerPass) {
      ErrorPass<Arch> pass;
      const float* from = x + first * kLanes;
      uint8_t* to = target.bytes + (packing == RunPacking::fifths ? 4 : 0) + first * kLanes;
      for (size_t run = 0; run < runs; ++run, from += kExtentRun, to += target.stride) {
        const F factor(parameters.factor[run]), scale(parameters.scale[run]),
            shift(has_minimum ? parameters.add[run] : 0.0f), minimum(has_minimum ? parameters.minimum[run] : 0.0f);
        std::array<U, 4> q;  // two registers of the run's first half, two of its second
        for (size_t k = 0; k < 4; ++k) {
          const F original = simd::load<Arch>(from + k / 2 * kErrorLanes + k % 2 * kLanes);
          F whole, value;
          if constexpr (is_rounded) {
            // Rounds halves away from zero: adding the float just below 0.5 carries where exact + 0.5 would.
            const F position = original * factor;
            const U half = (simd::as_uint<Arch>(position) & sign) | below_half;
            whole = xsimd::trunc(position + simd::as_float<Arch>(half));
            value = whole * scale;
          } else {
            const F position = (has_minimum ? original + shift : original) * factor;
            whole = simd::smaller<Arch>(simd::round<Arch>(RoundMethod::floor, position + bias), high);
            value = has_minimum ? whole * scale + minimum : (whole - center) * scale;
          }
          q[k] = nearest.bits(whole);
          if constexpr (packing == RunPacking::fifths) {
            const auto bits = static_cast<uint32_t>((whole > fourth_bits).mask());
            fifth_bits[run] |= bits << (k / 2 * kErrorLanes + (first + k % 2) * kLanes);
          }
          pass.add(k % 2, original, value);
        }
        if constexpr (packing == RunPacking::bytes) {
          for (U& code : q) code &= low_byte;
          simd::store_apart<Arch>(simd::narrow_bytes<Arch>(q), to, to + kErrorLanes);
        } else {
          const U left = ((q[0] & nibble) | q[2] << 4) & low_byte, right = ((q[1] & nibble) | q[3] << 4) & low_byte;
          simd::store_low_half<Arch>(simd::narrow_bytes<Arch>({left, right, left, right}), to);
        }
      }
      all.take(first, pass);
    }
    if constexpr (packing == RunPacking::fifths)
      for (size_t run = 0; run < runs; ++run) std::memcpy(target.bytes + run * target.stride, &fifth_bits[run], 4);
    return all.sums(runs * kExtentRun);
  }
};

struct RunScales {
  template <class Arch>
  bool operator()(Arch, const float* low, const float* high, size_t runs, float levels, bool has_minimum, float* scale,
                  float* factor, float* add) const noexcept {
    using F = simd::F<Arch>;
    using U = simd::U<Arch>;
    const F by(levels), one(1.0f), zero(0.0f), infinity(std::numeric_limits<float>::infinity());
    const U no_sign = simd::constant<Arch>(0x7FFFFFFFu), sign = simd::constant<Arch>(0x80000000u);
    bool any_unusable = false;
    for (size_t i = 0; i < runs; i += simd::lanes<Arch>) {
      const F least = simd::load<Arch>(low + i), most = simd::load<Arch>(high + i);
      const F minus = simd::as_float<Arch>(simd::as_uint<Arch>(least) ^ sign);
      const F extent = has_minimum ? most - least : xsimd::select(most > minus, most, levels > 0 ? minus : least);
      const F d = (extent + zero) / by, inverse = one / d;
      const F magnitude = simd::as_float<Arch>(simd::as_uint<Arch>(inverse) & no_sign);
      const F usable = simd::as_float<Arch>(simd::when<Arch>(magnitude < infinity, simd::as_uint<Arch>(inverse)));
      any_unusable |= xsimd::any(usable == zero && d != zero);
      d.store_unaligned(scale + i);
      usable.store_unaligned(factor + i);
      minus.store_unaligned(add + i);
    }
    return any_unusable;
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

ErrorSums measured_codes(const float* x, size_t runs, const RunCoding& coding, const RunParameters& parameters,
                         const RunBytes& to) noexcept {
  const auto by = [&]<bool is_rounded, bool has_minimum, RunPacking packing>() {
    return kernels::run<MeasuredCodes<is_rounded, has_minimum, packing>>(x, runs, coding, parameters, to);
  };
  using enum RunPacking;
  if (coding.is_rounded) return by.template operator()<true, false, bytes>();
  if (to.packing == nibbles)
    return coding.has_minimum ? by.template operator()<false, true, nibbles>()
                              : by.template operator()<false, false, nibbles>();
  return coding.has_minimum ? by.template operator()<false, true, fifths>()
                            : by.template operator()<false, false, fifths>();
}

bool run_scales(const float* low, const float* high, size_t runs, float levels, bool has_minimum, float* scale,
                float* factor, float* add) noexcept {
  return run<RunScales>(low, high, runs, levels, has_minimum, scale, factor, add);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
