// Plain casts between float32 and the 16-bit floats.
//   bfloat16: the upper half of a float32.   float16: sign 1 | exponent 5 (bias 15) | mantissa 10 (IEEE 754 binary16)
// Narrowing is nearest even with gradual underflow; a NaN keeps its sign and upper payload bits and becomes quiet.
#include "kernels/dispatch.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels {

struct WidenBf16 {
  template <class Arch>
  void operator()(Arch, std::span<const uint16_t> bits, float* x) const noexcept {
    using U16 = simd::U16<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    const U16 zero(uint16_t{0});
    size_t i = 0;
    for (; i + 2 * kLanes <= bits.size(); i += 2 * kLanes) {
      const U16 v = U16::load_unaligned(bits.data() + i);
      xsimd::bitwise_cast<float>(xsimd::zip_lo(zero, v)).store_unaligned(x + i);
      xsimd::bitwise_cast<float>(xsimd::zip_hi(zero, v)).store_unaligned(x + i + kLanes);
    }
    if (i < bits.size()) reference::widen_bf16(bits.subspan(i), x + i);
  }
};

struct NarrowBf16 {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, uint16_t* bits) const noexcept {
    using F = simd::F<Arch>;
    using U = simd::U<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    const U one = simd::constant<Arch>(1u), half = simd::constant<Arch>(0x7FFFu), quiet = simd::constant<Arch>(0x40u);
    const auto narrow = [&](const F& v) {
      const U u = simd::as_uint<Arch>(v), upper = u >> 16;
      const U rounded = (u + (upper & one) + half) >> 16;
      return simd::select<Arch>(v == v, rounded, upper | quiet);
    };
    size_t i = 0;
    for (; i + 2 * kLanes <= x.size(); i += 2 * kLanes)
      simd::store_halves<Arch>(narrow(simd::load<Arch>(x.data() + i)), narrow(simd::load<Arch>(x.data() + i + kLanes)),
                               bits + i);
    if (i < x.size()) reference::narrow_bf16(x.subspan(i), bits + i);
  }
};

struct WidenF16 {
  template <class Arch>
  void operator()(Arch, std::span<const uint16_t> bits, float* x) const noexcept {
    using I = simd::I<Arch>;
    using U = simd::U<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    const simd::MinifloatCodec<Arch> codec(float_format_of(Dtype::float16));
    const U no_sign = simd::constant<Arch>(0x7FFFu), sign = simd::constant<Arch>(0x80000000u);
    const U all_ones = simd::constant<Arch>(0x7F800000u), quiet = simd::constant<Arch>(0x00400000u);
    const I infinity = simd::constant<Arch>(int32_t{0x7C00}), last_finite = simd::constant<Arch>(int32_t{0x7BFF});
    const auto widen = [&](const U& code) {
      const U magnitude = code & no_sign;
      const I order = xsimd::bitwise_cast<int32_t>(magnitude);
      // Infinity and NaN come out as finite values: give them the all-ones exponent; NaN becomes quiet.
      const U finite = simd::as_uint<Arch>(codec.decode(magnitude));
      const U exponent = simd::when<Arch>(order > last_finite, all_ones) | simd::when<Arch>(order > infinity, quiet);
      return simd::as_float<Arch>(finite | exponent | ((code << 16) & sign));
    };
    size_t i = 0;
    for (; i + 2 * kLanes <= bits.size(); i += 2 * kLanes) {
      const auto code = simd::load_halves<Arch>(bits.data() + i);
      widen(code[0]).store_unaligned(x + i);
      widen(code[1]).store_unaligned(x + i + kLanes);
    }
    if (i < bits.size()) reference::widen_f16(bits.subspan(i), x + i);
  }
};

struct NarrowF16 {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, uint16_t* bits) const noexcept {
    using F = simd::F<Arch>;
    using U = simd::U<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    const simd::MinifloatCodec<Arch> codec(float_format_of(Dtype::float16));
    const F too_large = simd::constant<Arch>(65536.0f);  // encodes as infinity
    const U no_sign = simd::constant<Arch>(0x7FFFFFFFu), sign = simd::constant<Arch>(0x8000u);
    const U payload = simd::constant<Arch>(0x3FFu), quiet_nan = simd::constant<Arch>(0x7E00u);
    const auto narrow = [&](const F& v) {
      const U u = simd::as_uint<Arch>(v), magnitude = u & no_sign;
      const F bounded = simd::smaller<Arch>(too_large, simd::as_float<Arch>(magnitude));
      const U finite = codec.encode(bounded);
      const U nan = ((magnitude >> 13) & payload) | quiet_nan;
      return simd::select<Arch>(v == v, finite, nan) | ((u >> 16) & sign);
    };
    size_t i = 0;
    for (; i + 2 * kLanes <= x.size(); i += 2 * kLanes)
      simd::store_halves<Arch>(narrow(simd::load<Arch>(x.data() + i)), narrow(simd::load<Arch>(x.data() + i + kLanes)),
                               bits + i);
    if (i < x.size()) reference::narrow_f16(x.subspan(i), bits + i);
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

void widen_bf16(std::span<const uint16_t> bits, float* x) noexcept { run<WidenBf16>(bits, x); }
void widen_f16(std::span<const uint16_t> bits, float* x) noexcept { run<WidenF16>(bits, x); }
void narrow_bf16(std::span<const float> x, uint16_t* bits) noexcept { run<NarrowBf16>(x, bits); }
void narrow_f16(std::span<const float> x, uint16_t* bits) noexcept { run<NarrowF16>(x, bits); }

}  // namespace WASMQUANT_ENTRY_NAMESPACE
