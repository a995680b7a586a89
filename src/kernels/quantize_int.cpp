// float32 to integer codes and back, affine.   real: q = clamp(round(x * inverse + zero_point))
//                                              fake: q = clamp(round(x * inverse) + zero_point)
// With a whole zero point both are round(clamp'(x * inverse + before)) + after. Real: before = zero_point, after = 0.
// Fake: before = 0, after = zero_point, and clamp' goes from quant_min - after to quant_max - after. Clamping to whole
// numbers may precede rounding, and in float it leaves no integer conversion to overflow. NaN counts as +0.
#include <cmath>

#include "kernels/dispatch.h"
#include "kernels/reference.h"

namespace wasmquant::kernels {

/// round(clamp'(x * inverse + before)) as float; for half_even without the rounding, which NearestInt does.
template <RoundMethod R, class Arch>
struct Grid {
  using F = simd::F<Arch>;
  Grid(const Affine& a, float after) noexcept
      : inverse(a.inverse), before(a.zero_point - after), low(a.quant_min - after), high(a.quant_max - after) {}

  XSIMD_INLINE F operator()(const F& x) const noexcept {
    const F v = simd::clamp<Arch>(simd::zero_nan<Arch>(x) * inverse + before, low, high);
    if constexpr (R == RoundMethod::half_even)
      return v;
    else
      return simd::round<R, Arch>(v);
  }
  F inverse, before, low, high;
};

template <RoundMethod R>
struct QuantizeCodes8 {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, const Affine& a, Path path, uint8_t* codes) const noexcept {
    const float after = path == Path::fake ? a.zero_point : 0.0f;
    const Grid<R, Arch> grid(a, after);
    const simd::NearestInt<Arch> nearest;
    const simd::U<Arch> low_byte = simd::constant<Arch>(0xFFu);
    const simd::U8<Arch> zero_code(static_cast<uint8_t>(static_cast<int32_t>(after)));
    size_t i = 0;
    for (; i + simd::step<Arch> <= x.size(); i += simd::step<Arch>) {
      std::array<simd::U<Arch>, 4> q;
      for (size_t k = 0; k < 4; ++k)
        q[k] = nearest.bits(grid(simd::load<Arch>(x.data() + i + k * simd::lanes<Arch>))) & low_byte;
      (simd::narrow_bytes<Arch>(q) + zero_code).store_unaligned(codes + i);
    }
    if (i < x.size()) reference::quantize_codes8(x.subspan(i), a, R, path, codes + i);
  }
};

template <RoundMethod R>
struct QuantizeCodes16 {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, const Affine& a, Path path, uint16_t* codes) const noexcept {
    using U = simd::U<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    const float after = path == Path::fake ? a.zero_point : 0.0f;
    const Grid<R, Arch> grid(a, after);
    const simd::NearestInt<Arch> nearest;
    const U low_half = simd::constant<Arch>(0xFFFFu), zero_code(static_cast<uint32_t>(static_cast<int32_t>(after)));
    const auto code_of = [&](const float* v) {
      return (nearest.bits(grid(simd::load<Arch>(v))) + zero_code) & low_half;
    };
    size_t i = 0;
    for (; i + 2 * kLanes <= x.size(); i += 2 * kLanes)
      simd::store_halves<Arch>(code_of(x.data() + i), code_of(x.data() + i + kLanes), codes + i);
    if (i < x.size()) reference::quantize_codes16(x.subspan(i), a, R, path, codes + i);
  }
};

/// Zero points that may be fractional: the formulas as they stand. The unused one of before and after is -0, the number
/// that adds nothing to anything.
template <RoundMethod R>
struct QuantizeCodes8Each {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, const float* inverse, const float* zero_point, float quant_min,
                  float quant_max, Path path, uint8_t* codes) const noexcept {
    using F = simd::F<Arch>;
    const F low(quant_min), high(quant_max), nothing = simd::constant<Arch>(-0.0f);
    const simd::NearestInt<Arch> nearest;
    const simd::U<Arch> low_byte = simd::constant<Arch>(0xFFu);
    size_t i = 0;
    for (; i + simd::step<Arch> <= x.size(); i += simd::step<Arch>) {
      std::array<simd::U<Arch>, 4> q;
      for (size_t k = 0; k < 4; ++k) {
        const size_t at = i + k * simd::lanes<Arch>;
        const F zero = simd::load<Arch>(zero_point + at);
        const F v = simd::zero_nan<Arch>(simd::load<Arch>(x.data() + at)) * simd::load<Arch>(inverse + at);
        const F rounded = simd::round<R, Arch>(v + (path == Path::real ? zero : nothing));
        q[k] = nearest.bits(simd::clamp<Arch>(rounded + (path == Path::fake ? zero : nothing), low, high)) & low_byte;
      }
      simd::narrow_bytes<Arch>(q).store_unaligned(codes + i);
    }
    if (i < x.size())
      reference::quantize_codes8_each(x.subspan(i), inverse + i, zero_point + i, quant_min, quant_max, R, path,
                                      codes + i);
  }
};

template <RoundMethod R>
struct FakeQuantizeInt {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, const Affine& a, float* y) const noexcept {
    using F = simd::F<Arch>;
    const Grid<R, Arch> grid(a, a.zero_point);
    const simd::NearestInt<Arch> nearest;
    const F scale(a.scale);
    size_t i = 0;
    for (; i + simd::step<Arch> <= x.size(); i += simd::step<Arch>) {
      for (size_t k = 0; k < 4; ++k) {
        const size_t at = i + k * simd::lanes<Arch>;
        (nearest.whole(grid(simd::load<Arch>(x.data() + at))) * scale).store_unaligned(y + at);
      }
    }
    if (i < x.size()) reference::fake_quantize_int(x.subspan(i), a, R, y + i);
  }
};

template <bool Signed>
struct DequantizeCodes8 {
  template <class Arch>
  void operator()(Arch, std::span<const uint8_t> codes, const Affine& a, float* y) const noexcept {
    using F = simd::F<Arch>;
    const F zero_point(a.zero_point), scale(a.scale);
    size_t i = 0;
    for (; i + simd::step<Arch> <= codes.size(); i += simd::step<Arch>) {
      const auto code = simd::load_bytes<Signed, Arch>(codes.data() + i);
      for (size_t k = 0; k < 4; ++k)
        ((xsimd::to_float(code[k]) - zero_point) * scale).store_unaligned(y + i + k * simd::lanes<Arch>);
    }
    if (i < codes.size()) reference::dequantize_codes8(codes.subspan(i), Signed, a, y + i);
  }
};

/// The instance of a kernel template for a rounding that is known at run time.
template <template <RoundMethod> class Kernel, class... Args>
void run_rounded(RoundMethod round, const Args&... args) noexcept {
  switch (round) {
    case RoundMethod::half_even:
      return run<Kernel<RoundMethod::half_even>>(args...);
    case RoundMethod::round:
      return run<Kernel<RoundMethod::round>>(args...);
    case RoundMethod::floor:
      return run<Kernel<RoundMethod::floor>>(args...);
  }
}

/// Whether the bodies' formula holds; the rare rest (zero_point_type float32, fake path) is left to the oracle.
static bool is_whole(const Affine& a, Path path) noexcept {
  return path == Path::real || (a.zero_point == std::floor(a.zero_point) && std::fabs(a.zero_point) <= 65536.0f);
}

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

void quantize_codes8(std::span<const float> x, const Affine& a, RoundMethod round, Path path, uint8_t* codes) noexcept {
  if (!is_whole(a, path)) return reference::quantize_codes8(x, a, round, path, codes);
  run_rounded<QuantizeCodes8>(round, x, a, path, codes);
}

void quantize_codes16(std::span<const float> x, const Affine& a, RoundMethod round, Path path,
                      uint16_t* codes) noexcept {
  if (!is_whole(a, path)) return reference::quantize_codes16(x, a, round, path, codes);
  run_rounded<QuantizeCodes16>(round, x, a, path, codes);
}

void quantize_codes8_each(std::span<const float> x, const float* inverse, const float* zero_point, float quant_min,
                          float quant_max, RoundMethod round, Path path, uint8_t* codes) noexcept {
  run_rounded<QuantizeCodes8Each>(round, x, inverse, zero_point, quant_min, quant_max, path, codes);
}

void dequantize_codes8(std::span<const uint8_t> codes, bool is_signed, const Affine& a, float* y) noexcept {
  if (is_signed)
    run<DequantizeCodes8<true>>(codes, a, y);
  else
    run<DequantizeCodes8<false>>(codes, a, y);
}

void fake_quantize_int(std::span<const float> x, const Affine& a, RoundMethod round, float* y) noexcept {
  if (!is_whole(a, Path::fake)) return reference::fake_quantize_int(x, a, round, y);
  run_rounded<FakeQuantizeInt>(round, x, a, y);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
