// float32 to integer codes and back, affine.   real: q = clamp(round(x * inverse + zero_point))
//                                              fake: q = clamp(round(x * inverse) + zero_point)
// With a whole zero point both are round(clamp'(x * inverse + before)) + after. Real: before = zero_point, after = 0.
// Fake: before = 0, after = zero_point, and clamp' spans quant_min - after to quant_max - after. Clamping to whole
// numbers may precede rounding; done in float, it keeps integer conversions from overflowing. NaN counts as +0.
#include <cmath>

#include "kernels/dispatch.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels {

/// round(clamp'(x * inverse + before)) as float; for half_even without the rounding, which NearestInt does.
template <bool HalfEven, class Arch>
struct Grid {
  using F = simd::F<Arch>;
  Grid(const Affine& a, float after, RoundMethod method) noexcept
      : inverse(a.inverse),
        before(a.zero_point - after),
        low(a.quant_min - after),
        high(a.quant_max - after),
        round(method) {}

  XSIMD_INLINE F operator()(const F& x) const noexcept {
    const F v = simd::clamp<Arch>(simd::zero_nan<Arch>(x) * inverse + before, low, high);
    if constexpr (HalfEven)
      return v;
    else
      return simd::round<Arch>(round, v);
  }
  F inverse, before, low, high;
  RoundMethod round;
};

/// Whether the formula of these bodies applies. The scalar oracle handles the rare rest: zero_point_type float32 on the
/// fake path, and grids wider than NearestInt.
XSIMD_INLINE bool fits(const Affine& a, Path path) noexcept {
  if (a.quant_max - a.quant_min > 65535.0f) return false;
  return path == Path::real || (a.zero_point == std::floor(a.zero_point) && std::fabs(a.zero_point) <= 65536.0f);
}

/// Calls body(begin, count, grid) for each run of n elements.
template <class Body>
XSIMD_INLINE void for_each_grid(size_t n, const Affine* grids, size_t run, Body&& body) noexcept {
  for (size_t begin = 0; begin < n; begin += run, ++grids) body(begin, n - begin < run ? n - begin : run, *grids);
}

template <bool HalfEven>
struct QuantizeCodes8 {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, const Affine* grids, size_t run, RoundMethod round, Path path,
                  uint8_t* codes) const noexcept {
    const simd::NearestInt<Arch> nearest;
    const simd::U<Arch> low_byte = simd::constant<Arch>(0xFFu);
    for_each_grid(x.size(), grids, run, [&](size_t begin, size_t count, const Affine& a) {
      const float* from = x.data() + begin;
      uint8_t* to = codes + begin;
      size_t i = 0;
      if (!fits(a, path)) return reference::quantize_codes8({from, count}, &a, count, round, path, to);
      const float after = path == Path::fake ? a.zero_point : 0.0f;
      const Grid<HalfEven, Arch> grid(a, after, round);
      const simd::U8<Arch> zero_code(static_cast<uint8_t>(static_cast<int32_t>(after)));
      for (; i + simd::step<Arch> <= count; i += simd::step<Arch>) {
        std::array<simd::U<Arch>, 4> q;
        for (size_t k = 0; k < 4; ++k)
          q[k] = nearest.bits(grid(simd::load<Arch>(from + i + k * simd::lanes<Arch>))) & low_byte;
        (simd::narrow_bytes<Arch>(q) + zero_code).store_unaligned(to + i);
      }
      if (i < count) reference::quantize_codes8({from + i, count - i}, &a, count, round, path, to + i);
    });
  }
};

template <bool HalfEven>
struct QuantizeCodes16 {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, const Affine* grids, size_t run, RoundMethod round, Path path,
                  uint16_t* codes) const noexcept {
    using U = simd::U<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    const simd::NearestInt<Arch> nearest;
    const U low_half = simd::constant<Arch>(0xFFFFu);
    for_each_grid(x.size(), grids, run, [&](size_t begin, size_t count, const Affine& a) {
      const float* from = x.data() + begin;
      uint16_t* to = codes + begin;
      size_t i = 0;
      if (!fits(a, path)) return reference::quantize_codes16({from, count}, &a, count, round, path, to);
      const float after = path == Path::fake ? a.zero_point : 0.0f;
      const Grid<HalfEven, Arch> grid(a, after, round);
      const U zero_code(static_cast<uint32_t>(static_cast<int32_t>(after)));
      const auto code_of = [&](const float* v) {
        return (nearest.bits(grid(simd::load<Arch>(v))) + zero_code) & low_half;
      };
      for (; i + 2 * kLanes <= count; i += 2 * kLanes)
        simd::store_halves<Arch>(code_of(from + i), code_of(from + i + kLanes), to + i);
      if (i < count) reference::quantize_codes16({from + i, count - i}, &a, count, round, path, to + i);
    });
  }
};

/// Zero points that may be fractional: the formulas unchanged. The unused one of before and after is -0.
struct QuantizeCodes8Each {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, const float* inverse, const float* zero_point, float quant_min,
                  float quant_max, RoundMethod round, Path path, uint8_t* codes) const noexcept {
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
        const F rounded = simd::round<Arch>(round, v + (path == Path::real ? zero : nothing));
        q[k] = nearest.bits(simd::clamp<Arch>(rounded + (path == Path::fake ? zero : nothing), low, high)) & low_byte;
      }
      simd::narrow_bytes<Arch>(q).store_unaligned(codes + i);
    }
    if (i < x.size())
      reference::quantize_codes8_each(x.subspan(i), inverse + i, zero_point + i, quant_min, quant_max, round, path,
                                      codes + i);
  }
};

template <bool HalfEven>
struct FakeQuantizeInt {
  template <class Arch>
  void operator()(Arch, std::span<const float> x, const Affine* grids, size_t run, RoundMethod round,
                  float* y) const noexcept {
    using F = simd::F<Arch>;
    const simd::NearestInt<Arch> nearest;
    for_each_grid(x.size(), grids, run, [&](size_t begin, size_t count, const Affine& a) {
      const float* from = x.data() + begin;
      float* to = y + begin;
      size_t i = 0;
      if (!fits(a, Path::fake)) return reference::fake_quantize_int({from, count}, &a, count, round, to);
      const Grid<HalfEven, Arch> grid(a, a.zero_point, round);
      const F scale(a.scale);
      for (; i + simd::step<Arch> <= count; i += simd::step<Arch>) {
        for (size_t k = 0; k < 4; ++k) {
          const size_t at = i + k * simd::lanes<Arch>;
          (nearest.whole(grid(simd::load<Arch>(from + at))) * scale).store_unaligned(to + at);
        }
      }
      if (i < count) reference::fake_quantize_int({from + i, count - i}, &a, count, round, to + i);
    });
  }
};

template <bool Signed>
struct DequantizeCodes8 {
  template <class Arch>
  void operator()(Arch, std::span<const uint8_t> codes, const Affine* grids, size_t run, float* y) const noexcept {
    using F = simd::F<Arch>;
    for_each_grid(codes.size(), grids, run, [&](size_t begin, size_t count, const Affine& a) {
      const F zero_point(a.zero_point), scale(a.scale);
      const uint8_t* from = codes.data() + begin;
      float* to = y + begin;
      size_t i = 0;
      for (; i + simd::step<Arch> <= count; i += simd::step<Arch>) {
        const auto code = simd::load_bytes<Signed, Arch>(from + i);
        for (size_t k = 0; k < 4; ++k)
          ((xsimd::to_float(code[k]) - zero_point) * scale).store_unaligned(to + i + k * simd::lanes<Arch>);
      }
      if (i < count) reference::dequantize_codes8({from + i, count - i}, Signed, &a, count, to + i);
    });
  }
};

/// half_even has its own body; the other roundings share one that selects per register.
template <template <bool> class Kernel, class... Args>
void run_rounded(RoundMethod round, const Args&... args) noexcept {
  if (round == RoundMethod::half_even)
    run<Kernel<true>>(args...);
  else
    run<Kernel<false>>(args...);
}

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

void quantize_codes8(std::span<const float> x, const Affine* grids, size_t run, RoundMethod round, Path path,
                     uint8_t* codes) noexcept {
  run_rounded<QuantizeCodes8>(round, x, grids, run, round, path, codes);
}

void quantize_codes16(std::span<const float> x, const Affine* grids, size_t run, RoundMethod round, Path path,
                      uint16_t* codes) noexcept {
  run_rounded<QuantizeCodes16>(round, x, grids, run, round, path, codes);
}

void quantize_codes8_each(std::span<const float> x, const float* inverse, const float* zero_point, float quant_min,
                          float quant_max, RoundMethod round, Path path, uint8_t* codes) noexcept {
  kernels::run<QuantizeCodes8Each>(x, inverse, zero_point, quant_min, quant_max, round, path, codes);
}

void dequantize_codes8(std::span<const uint8_t> codes, bool is_signed, const Affine* grids, size_t run,
                       float* y) noexcept {
  if (is_signed)
    kernels::run<DequantizeCodes8<true>>(codes, grids, run, y);
  else
    kernels::run<DequantizeCodes8<false>>(codes, grids, run, y);
}

void fake_quantize_int(std::span<const float> x, const Affine* grids, size_t run, RoundMethod round,
                       float* y) noexcept {
  run_rounded<FakeQuantizeInt>(round, x, grids, run, round, y);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
