// float32 to fp8 and back.   code = cast(clamp(x / scale, -max, max)),  value = decode(code) * scale
// Source of the bit layouts: numeric/dtypes.def; of the tricks: simd.h, encode_magnitude and decode_magnitude.
#include "kernels/dispatch.h"
#include "kernels/reference.h"
#include "numeric/minifloat.h"

namespace wasmquant::kernels {

template <Dtype D>
struct QuantizeFp8 {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, float scale, uint8_t* codes) const noexcept {
    using F = simd::F<Arch>;
    using U = simd::U<Arch>;
    constexpr FloatFormat kFormat = float_format_of(D);
    const simd::EncodeMagnitude<kFormat.mantissa_bits, kFormat.bias, Arch> encode_magnitude;
    const F divisor(scale), max = simd::constant<Arch>(static_cast<float>(info_of(D).max_finite));
    const U no_sign = simd::constant<Arch>(0x7FFFFFFFu), sign_of_code = simd::constant<Arch>(kFormat.sign_mask());
    const U nan_code = simd::constant<Arch>(kFormat.nan_code());
    size_t i = 0;
    for (; i + simd::step<Arch> <= x.size(); i += simd::step<Arch>) {
      std::array<U, 4> code;
      for (size_t k = 0; k < 4; ++k) {
        const F v = simd::load<Arch>(x.data() + i + k * simd::lanes<Arch>);
        const F magnitude = simd::as_float<Arch>(simd::as_uint<Arch>(v / divisor) & no_sign);
        const U finite = encode_magnitude(simd::as_uint<Arch>(simd::smaller<Arch>(max, magnitude)));
        code[k] = simd::select<Arch>(v == v, finite, nan_code) | ((simd::as_uint<Arch>(v) >> 24) & sign_of_code);
      }
      simd::narrow_bytes<Arch>(code).store_unaligned(codes + i);
    }
    if (i < x.size()) reference::quantize_fp8(x.subspan(i), scale, D, codes + i);
  }
};

template <Dtype D>
struct DequantizeFp8 {
  template <class Arch>
  void operator()(Arch, std::span<const uint8_t> codes, float scale, float* y) const noexcept {
    using F = simd::F<Arch>;
    using I = simd::I<Arch>;
    using U = simd::U<Arch>;
    constexpr FloatFormat kFormat = float_format_of(D);
    constexpr bool kHasInfinity = kFormat.specials == Specials::ieee;
    const simd::DecodeMagnitude<kFormat.mantissa_bits, kFormat.bias, Arch> decode_magnitude;
    const F factor(scale);
    const U magnitude_of_code = simd::constant<Arch>(kFormat.magnitude_mask());
    const U quiet_nan = simd::constant<Arch>(0x7FC00000u), infinity = simd::constant<Arch>(0x7F800000u);
    const U sign = simd::constant<Arch>(0x80000000u);
    const I infinity_code = simd::constant<Arch>(static_cast<int32_t>(kFormat.infinity()));
    const I last_number = simd::constant<Arch>(static_cast<int32_t>(kFormat.max_code() + (kHasInfinity ? 1 : 0)));
    size_t i = 0;
    for (; i + simd::step<Arch> <= codes.size(); i += simd::step<Arch>) {
      const auto code = simd::load_bytes<false, Arch>(codes.data() + i);
      for (size_t k = 0; k < 4; ++k) {
        const U bits = xsimd::bitwise_cast<uint32_t>(code[k]);
        const U magnitude = bits & magnitude_of_code;
        const I order = xsimd::bitwise_cast<int32_t>(magnitude);
        const F finite = decode_magnitude(magnitude) * factor;
        U value = simd::as_uint<Arch>(finite);
        if constexpr (kHasInfinity) value = simd::select<Arch>(order < infinity_code, value, infinity);
        value = simd::select<Arch>(order > last_number, quiet_nan, value);
        simd::as_float<Arch>(value | ((bits << 24) & sign)).store_unaligned(y + i + k * simd::lanes<Arch>);
      }
    }
    if (i < codes.size()) reference::dequantize_fp8(codes.subspan(i), scale, D, y + i);
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

void quantize_fp8(std::span<const float> x, float scale, Dtype dtype, uint8_t* codes) noexcept {
  if (dtype == Dtype::fp8_e4m3)
    run<QuantizeFp8<Dtype::fp8_e4m3>>(x, scale, codes);
  else
    run<QuantizeFp8<Dtype::fp8_e5m2>>(x, scale, codes);
}

void dequantize_fp8(std::span<const uint8_t> codes, float scale, Dtype dtype, float* y) noexcept {
  if (dtype == Dtype::fp8_e4m3)
    run<DequantizeFp8<Dtype::fp8_e4m3>>(codes, scale, y);
  else
    run<DequantizeFp8<Dtype::fp8_e5m2>>(codes, scale, y);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
