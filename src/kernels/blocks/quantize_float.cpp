// float32 to minifloats and back.   code = cast(x / scale),  value = decode(code) * scale
// One body serves all formats; their differences are data (simd.h, MinifloatCodec). Layouts: numeric/dtypes.def.
#include "kernels/dispatch.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels {

/// Calls body(over_scale), which maps x to x / scale. A power of two (every MX scale) is multiplied by its exact
/// reciprocal: same result, faster, and it avoids the microcode assist for the subnormal divisor 2^-127 of zero blocks.
template <class Arch, class Body>
XSIMD_INLINE void with_quotient(float scale, Body&& body) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(scale);
  const bool is_power_of_two = (bits & 0x7FFFFF) == 0 || scale == 0x1p-127f;
  if (is_power_of_two && bits != 0) {
    const simd::F<Arch> reciprocal(1.0f / scale);
    body([&](const simd::F<Arch>& x) { return x * reciprocal; });
  } else {
    const simd::F<Arch> divisor(scale);
    body([&](const simd::F<Arch>& x) { return x / divisor; });
  }
}

/// Calls body(begin, count, scale) for each run of n elements.
template <class Body>
XSIMD_INLINE void for_each_scale(size_t n, const float* scales, size_t run, Body&& body) noexcept {
  for (size_t begin = 0; begin < n; begin += run, ++scales) body(begin, n - begin < run ? n - begin : run, *scales);
}

/// Magnitude codes of scaled values (NaN excluded) and their signs.
template <class Arch>
struct FloatEncoder {
  using F = simd::F<Arch>;
  using U = simd::U<Arch>;
  using I = simd::I<Arch>;

  explicit FloatEncoder(const FloatFormat& f) noexcept
      : codec(f),
        max(static_cast<float>(f.max_finite())),
        no_sign(simd::constant<Arch>(0x7FFFFFFFu)),
        last_without_sign(f.zeros == Zeros::one ? 0 : -1),
        is_signed(f.is_signed) {}

  /// v = x / scale.
  XSIMD_INLINE U magnitude(const F& v) const noexcept {
    const F clamped = simd::smaller<Arch>(max, simd::as_float<Arch>(simd::as_uint<Arch>(v) & no_sign));
    const U code = codec.encode(clamped);
    // Unsigned formats map negative values to 0.
    return is_signed ? code : simd::when<Arch>(v >= F(0.0f), code);
  }
  /// `sign`, unless the code has none.
  XSIMD_INLINE U kept_sign(const U& sign, const U& magnitude_code) const noexcept {
    return simd::when<Arch>(xsimd::bitwise_cast<int32_t>(magnitude_code) > last_without_sign, sign);
  }

  simd::MinifloatCodec<Arch> codec;
  F max;
  U no_sign;
  I last_without_sign;
  bool is_signed;
};

struct QuantizeFloat {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, const float* scales, size_t run, const FloatFormat& format,
                  uint8_t* codes) const noexcept {
    using F = simd::F<Arch>;
    using U = simd::U<Arch>;
    const FloatEncoder<Arch> encoder(format);
    const U nan_code(format.nan_code()), sign_of_code(format.sign_mask());
    const int sign_shift = 32 - static_cast<int>(format.bits());
    for_each_scale(x.size(), scales, run, [&](size_t begin, size_t count, const float& scale) {
      const float* from = x.data() + begin;
      size_t i = 0;
      with_quotient<Arch>(scale, [&](const auto& over_scale) {
        for (; i + simd::step<Arch> <= count; i += simd::step<Arch>) {
          std::array<U, 4> code;
          for (size_t k = 0; k < 4; ++k) {
            const F v = simd::load<Arch>(from + i + k * simd::lanes<Arch>);
            const U magnitude = simd::select<Arch>(v == v, encoder.magnitude(over_scale(v)), nan_code);
            const U sign = (simd::as_uint<Arch>(v) >> sign_shift) & sign_of_code;
            code[k] = magnitude | encoder.kept_sign(sign, magnitude);
          }
          simd::narrow_bytes<Arch>(code).store_unaligned(codes + begin + i);
        }
      });
      if (i < count) reference::quantize_float({from + i, count - i}, &scale, count, format, codes + begin + i);
    });
  }
};

struct DequantizeFloat {
  template <class Arch>
  void operator()(Arch, std::span<const uint8_t> codes, const float* scales, size_t run, const FloatFormat& format,
                  float* y) const noexcept {
    using F = simd::F<Arch>;
    using I = simd::I<Arch>;
    using U = simd::U<Arch>;
    const bool has_infinity = format.specials == Specials::ieee, is_fnuz = format.specials == Specials::fnuz;
    const simd::MinifloatCodec<Arch> codec(format);
    const U magnitude_of_code(format.magnitude_mask()), code_of_byte(format.sign_mask() | format.magnitude_mask());
    const U quiet_nan = simd::constant<Arch>(0x7FC00000u), infinity = simd::constant<Arch>(0x7F800000u);
    const U sign(format.is_signed ? 0x80000000u : 0u);
    const int sign_shift = 32 - static_cast<int>(format.bits());
    const I last_finite(static_cast<int32_t>(format.max_code()));
    const I last_number(static_cast<int32_t>(format.max_code() + (has_infinity ? 1 : 0)));
    const I fnuz_nan(is_fnuz ? static_cast<int32_t>(format.sign_mask()) : -1);
    for_each_scale(codes.size(), scales, run, [&](size_t begin, size_t count, const float& scale) {
      const F factor(scale);
      const U limit = infinity | (simd::as_uint<Arch>(factor) & U(0x80000000u));
      size_t i = 0;
      for (; i + simd::step<Arch> <= count; i += simd::step<Arch>) {
        const auto code = simd::load_bytes<false, Arch>(codes.data() + begin + i);
        for (size_t k = 0; k < 4; ++k) {
          const U bits = xsimd::bitwise_cast<uint32_t>(code[k]) & code_of_byte;
          const U magnitude = bits & magnitude_of_code;
          const I order = xsimd::bitwise_cast<int32_t>(magnitude);
          U value = simd::as_uint<Arch>(codec.decode(magnitude) * factor);
          value = simd::select<Arch>(order > last_finite, limit, value);
          value = simd::select<Arch>(order > last_number, quiet_nan, value);
          value = simd::select<Arch>(xsimd::bitwise_cast<int32_t>(bits) == fnuz_nan, quiet_nan, value);
          simd::as_float<Arch>(value ^ ((bits << sign_shift) & sign))
              .store_unaligned(y + begin + i + k * simd::lanes<Arch>);
        }
      }
      if (i < count)
        reference::dequantize_float({codes.data() + begin + i, count - i}, &scale, count, format, y + begin + i);
    });
  }
};

struct FakeQuantizeFloat {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, const float* scales, size_t run, const FloatFormat& format,
                  float* y) const noexcept {
    using F = simd::F<Arch>;
    using U = simd::U<Arch>;
    const FloatEncoder<Arch> encoder(format);
    // Magnitudes above this one pass through: NaN, and infinities where the format has them.
    const simd::I<Arch> last_cast(format.has_nan() ? 0x7F800000 : 0x7F7FFFFF);
    for_each_scale(x.size(), scales, run, [&](size_t begin, size_t count, const float& scale) {
      const F factor(scale);
      const float* from = x.data() + begin;
      size_t i = 0;
      with_quotient<Arch>(scale, [&](const auto& over_scale) {
        for (; i + simd::lanes<Arch> <= count; i += simd::lanes<Arch>) {
          const F v = simd::load<Arch>(from + i);
          const U code = encoder.magnitude(over_scale(v));
          const U value = simd::as_uint<Arch>(encoder.codec.decode(code) * factor) |
                          encoder.kept_sign(simd::as_uint<Arch>(v) & ~encoder.no_sign, code);
          const auto order = xsimd::bitwise_cast<int32_t>(simd::as_uint<Arch>(v) & encoder.no_sign);
          simd::as_float<Arch>(simd::select<Arch>(order > last_cast, simd::as_uint<Arch>(v), value))
              .store_unaligned(y + begin + i);
        }
      });
      if (i < count) reference::fake_quantize_float({from + i, count - i}, &scale, count, format, y + begin + i);
    });
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

void quantize_float(std::span<const float> x, const float* scales, size_t run, const FloatFormat& format,
                    uint8_t* codes) noexcept {
  kernels::run<QuantizeFloat>(x, scales, run, format, codes);
}

void dequantize_float(std::span<const uint8_t> codes, const float* scales, size_t run, const FloatFormat& format,
                      float* y) noexcept {
  kernels::run<DequantizeFloat>(codes, scales, run, format, y);
}

void fake_quantize_float(std::span<const float> x, const float* scales, size_t run, const FloatFormat& format,
                         float* y) noexcept {
  kernels::run<FakeQuantizeFloat>(x, scales, run, format, y);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
