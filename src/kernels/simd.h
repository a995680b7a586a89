// The vocabulary of the kernels: xsimd batches plus the few operations that xsimd lacks or lowers badly. The only file
// that includes xsimd or an intrinsic header. Each operation gives the same bits on every arch.
// Special cases are `if constexpr` on the arch: is_wasm (simd128), is_sse (sse4_2), is_avx2; the rest is emulated<128>.
#pragma once
#if !defined(__wasm__)
#define XSIMD_WITH_EMULATED 1
#endif
#include <xsimd/xsimd.hpp>
#if defined(__wasm_simd128__)
#include <wasm_simd128.h>
#elif defined(__x86_64__)
#include <immintrin.h>
#endif

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "numeric/minifloat.h"
#include "numeric/rounding.h"

// Older versions disagree between archs on NaN and ties in min and max, and on WASM masks.
static_assert(XSIMD_VERSION_MAJOR * 100 + XSIMD_VERSION_MINOR >= 1403, "xsimd 14.3 or newer is needed");

namespace wasmquant::kernels::simd {

template <class Arch>
using F = xsimd::batch<float, Arch>;
template <class Arch>
using I = xsimd::batch<int32_t, Arch>;
template <class Arch>
using U = xsimd::batch<uint32_t, Arch>;
template <class Arch>
using U8 = xsimd::batch<uint8_t, Arch>;
template <class Arch>
using U16 = xsimd::batch<uint16_t, Arch>;

/// Floats per register.
template <class Arch>
inline constexpr size_t lanes = F<Arch>::size;
/// Floats whose byte codes fill one register: the step of most loops.
template <class Arch>
inline constexpr size_t step = 4 * lanes<Arch>;

template <class Arch>
inline constexpr bool is_wasm = std::is_same_v<Arch, xsimd::wasm>;
template <class Arch>
inline constexpr bool is_sse = std::is_same_v<Arch, xsimd::sse4_2>;
template <class Arch>
inline constexpr bool is_avx2 = std::is_same_v<Arch, xsimd::avx2>;

/// A register of one number, for use in loops. WASM engines rebuild v128.const in every iteration (5 instructions in
/// V8), so the number is hidden from the optimiser, which then keeps it in a local.
template <class Arch, class T>
XSIMD_INLINE xsimd::batch<T, Arch> constant(T value) noexcept {
  if constexpr (is_wasm<Arch>) asm("" : "+r"(value));
  return xsimd::batch<T, Arch>(value);
}
template <class Arch>
XSIMD_INLINE F<Arch> load(const float* x) noexcept {
  return F<Arch>::load_unaligned(x);
}
template <class Arch>
XSIMD_INLINE U<Arch> as_uint(const F<Arch>& v) noexcept {
  return xsimd::bitwise_cast<uint32_t>(v);
}
template <class Arch>
XSIMD_INLINE I<Arch> as_int(const F<Arch>& v) noexcept {
  return xsimd::bitwise_cast<int32_t>(v);
}
template <class Arch>
XSIMD_INLINE F<Arch> as_float(const U<Arch>& v) noexcept {
  return xsimd::bitwise_cast<float>(v);
}

// ---- comparisons

/// v > a ? v : a, so a on NaN in v and on ties (of zeros).
template <class Arch>
XSIMD_INLINE F<Arch> larger(const F<Arch>& a, const F<Arch>& v) noexcept {
  return xsimd::max(a, v);
}
/// v < a ? v : a.
template <class Arch>
XSIMD_INLINE F<Arch> smaller(const F<Arch>& a, const F<Arch>& v) noexcept {
  return xsimd::min(a, v);
}
/// NaN stays NaN.
template <class Arch>
XSIMD_INLINE F<Arch> clamp(const F<Arch>& v, const F<Arch>& low, const F<Arch>& high) noexcept {
  return smaller<Arch>(larger<Arch>(v, low), high);
}
/// Signed maximum; xsimd compares and selects on WASM.
template <class Arch>
XSIMD_INLINE I<Arch> max_int(const I<Arch>& a, const I<Arch>& b) noexcept {
  if constexpr (is_wasm<Arch>)
    return wasm_i32x4_max(a.data, b.data);
  else
    return xsimd::max(a, b);
}
/// The largest lane. xsimd goes through memory on WASM.
template <class Arch>
XSIMD_INLINE int32_t largest_lane(const I<Arch>& v) noexcept {
  if constexpr (is_wasm<Arch>) {
    const auto half = wasm_i32x4_max(v.data, wasm_i32x4_shuffle(v.data, v.data, 2, 3, 0, 1));
    return wasm_i32x4_extract_lane(wasm_i32x4_max(half, wasm_i32x4_shuffle(half, half, 1, 0, 3, 2)), 0);
  } else {
    return xsimd::reduce_max(v);
  }
}
/// mask ? a : b per lane, for a mask from comparing floats or signed integers.
template <class Arch, class Mask>
XSIMD_INLINE U<Arch> select(const Mask& mask, const U<Arch>& a, const U<Arch>& b) noexcept {
  return xsimd::select(xsimd::batch_bool_cast<uint32_t>(mask), a, b);
}
/// mask ? v : 0.
template <class Arch, class Mask>
XSIMD_INLINE U<Arch> when(const Mask& mask, const U<Arch>& v) noexcept {
  if constexpr (is_wasm<Arch> || is_sse<Arch> || is_avx2<Arch>)
    return U<Arch>(xsimd::batch_bool_cast<uint32_t>(mask).data) & v;
  else
    return select<Arch>(mask, v, U<Arch>(0u));
}
/// +0 for NaN.
template <class Arch>
XSIMD_INLINE F<Arch> zero_nan(const F<Arch>& v) noexcept {
  return as_float<Arch>(when<Arch>(v == v, as_uint<Arch>(v)));
}

/// The lanes as float64, first half first. (xsimd 14.3 repeats lane 2 on sse4_1.)
template <class Arch>
XSIMD_INLINE std::array<xsimd::batch<double, Arch>, 2> widen(const F<Arch>& v) noexcept {
  if constexpr (is_sse<Arch>)
    return {_mm_cvtps_pd(v.data), _mm_cvtps_pd(_mm_movehl_ps(v.data, v.data))};
  else
    return xsimd::widen(v);
}

/// Whole parts of float64 lanes in int32's range, first half first. (xsimd converts to int64, lane by lane.)
template <class Arch>
XSIMD_INLINE I<Arch> truncate(const std::array<xsimd::batch<double, Arch>, 2>& v) noexcept {
  if constexpr (is_wasm<Arch>) {
    return wasm_i32x4_shuffle(wasm_i32x4_trunc_sat_f64x2_zero(v[0].data), wasm_i32x4_trunc_sat_f64x2_zero(v[1].data), 0,
                              1, 4, 5);
  } else if constexpr (is_sse<Arch>) {
    return _mm_unpacklo_epi64(_mm_cvttpd_epi32(v[0].data), _mm_cvttpd_epi32(v[1].data));
  } else if constexpr (is_avx2<Arch>) {
    return _mm256_set_m128i(_mm256_cvttpd_epi32(v[1].data), _mm256_cvttpd_epi32(v[0].data));
  } else {
    std::array<int32_t, lanes<Arch>> out;
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<int32_t>(v[i / (lanes<Arch> / 2)].get(i % (lanes<Arch> / 2)));
    return I<Arch>::load_unaligned(out.data());
  }
}

// ---- rounding

/// To a whole float. xsimd adds and subtracts 2^23 on WASM, which has an instruction for this.
template <class Arch>
XSIMD_INLINE F<Arch> round(RoundMethod method, const F<Arch>& v) noexcept {
  if (method == RoundMethod::half_even) {
    if constexpr (is_wasm<Arch>)
      return wasm_f32x4_nearest(v.data);
    else
      return xsimd::nearbyint(v);
  }
  // Not floor(v + 0.5) or trunc(v + 0.5): those sums round, and 0.49999997 would become 1.
  // Floats from 2^23 on are whole. Without an instruction, xsimd converts through int, which they may overflow.
  const auto is_small = xsimd::abs(v) < constant<Arch>(0x1p23f);
  const F<Arch> small = xsimd::select(is_small, v, constant<Arch>(0.0f));
  const F<Arch> whole =
      xsimd::select(is_small, method == RoundMethod::half_away ? xsimd::trunc(small) : xsimd::floor(small), v);
  if (method == RoundMethod::floor) return whole;
  const F<Arch> rest = v - whole, one = constant<Arch>(1.0f), zero = constant<Arch>(0.0f);
  return whole + xsimd::select(rest >= constant<Arch>(0.5f), one, zero) -
         xsimd::select(rest <= constant<Arch>(-0.5f), one, zero);
}
/// Whole numbers by adding 1.5 * 2^23, which leaves the nearest-even integer in the low mantissa bits. For |v| <= 2^22;
/// cheaper than rounding instructions and than a conversion, which WASM must make safe for NaN and overflow.
template <class Arch>
struct NearestInt {
  F<Arch> shifter = constant<Arch>(12582912.0f);
  /// Bits whose low half is that of the integer.
  XSIMD_INLINE U<Arch> bits(const F<Arch>& v) const noexcept { return as_uint<Arch>(v + shifter); }
  /// +0 for everything that becomes zero.
  XSIMD_INLINE F<Arch> whole(const F<Arch>& v) const noexcept { return (v + shifter) - shifter; }
};

// ---- small integers in memory

/// 4 * lanes bytes from lanes of at most 255.
template <class Arch>
XSIMD_INLINE U8<Arch> narrow_bytes(const std::array<U<Arch>, 4>& v) noexcept {
  if constexpr (is_wasm<Arch>) {
    return wasm_u8x16_narrow_i16x8(wasm_u16x8_narrow_i32x4(v[0].data, v[1].data),
                                   wasm_u16x8_narrow_i32x4(v[2].data, v[3].data));
  } else if constexpr (is_sse<Arch>) {
    return _mm_packus_epi16(_mm_packus_epi32(v[0].data, v[1].data), _mm_packus_epi32(v[2].data, v[3].data));
  } else if constexpr (is_avx2<Arch>) {  // packs within 128-bit halves: put the eight dwords back in order
    const auto packed =
        _mm256_packus_epi16(_mm256_packus_epi32(v[0].data, v[1].data), _mm256_packus_epi32(v[2].data, v[3].data));
    return _mm256_permutevar8x32_epi32(packed, U<Arch>(0, 4, 1, 5, 2, 6, 3, 7).data);
  } else {
    std::array<uint8_t, step<Arch>> out;
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(v[i / lanes<Arch>].get(i % lanes<Arch>));
    return U8<Arch>::load_unaligned(out.data());
  }
}

/// Stores 2 * lanes 16-bit words; every lane is at most 65535.
template <class Arch>
XSIMD_INLINE void store_halves(const U<Arch>& a, const U<Arch>& b, uint16_t* out) noexcept {
  if constexpr (is_wasm<Arch>) {
    U16<Arch>(wasm_u16x8_narrow_i32x4(a.data, b.data)).store_unaligned(out);
  } else if constexpr (is_sse<Arch>) {
    U16<Arch>(_mm_packus_epi32(a.data, b.data)).store_unaligned(out);
  } else if constexpr (is_avx2<Arch>) {
    U16<Arch>(_mm256_permute4x64_epi64(_mm256_packus_epi32(a.data, b.data), 0xD8)).store_unaligned(out);
  } else {
    for (size_t i = 0; i < lanes<Arch>; ++i) {
      out[i] = static_cast<uint16_t>(a.get(i));
      out[lanes<Arch> + i] = static_cast<uint16_t>(b.get(i));
    }
  }
}

/// 4 * lanes bytes as int32 lanes.
template <bool Signed, class Arch>
XSIMD_INLINE std::array<I<Arch>, 4> load_bytes(const uint8_t* in) noexcept {
  const U8<Arch> v = U8<Arch>::load_unaligned(in);
  if constexpr (is_wasm<Arch> && Signed) {
    const auto low = wasm_i16x8_extend_low_i8x16(v.data), high = wasm_i16x8_extend_high_i8x16(v.data);
    return {I<Arch>(wasm_i32x4_extend_low_i16x8(low)), I<Arch>(wasm_i32x4_extend_high_i16x8(low)),
            I<Arch>(wasm_i32x4_extend_low_i16x8(high)), I<Arch>(wasm_i32x4_extend_high_i16x8(high))};
  } else if constexpr (is_wasm<Arch>) {
    const auto low = wasm_u16x8_extend_low_u8x16(v.data), high = wasm_u16x8_extend_high_u8x16(v.data);
    return {I<Arch>(wasm_u32x4_extend_low_u16x8(low)), I<Arch>(wasm_u32x4_extend_high_u16x8(low)),
            I<Arch>(wasm_u32x4_extend_low_u16x8(high)), I<Arch>(wasm_u32x4_extend_high_u16x8(high))};
  } else if constexpr (is_sse<Arch>) {
    const auto widen = [](auto bytes) { return I<Arch>(Signed ? _mm_cvtepi8_epi32(bytes) : _mm_cvtepu8_epi32(bytes)); };
    return {widen(v.data), widen(_mm_srli_si128(v.data, 4)), widen(_mm_srli_si128(v.data, 8)),
            widen(_mm_srli_si128(v.data, 12))};
  } else if constexpr (is_avx2<Arch>) {
    const auto widen = [](auto bytes) {
      return I<Arch>(Signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes));
    };
    const auto low = _mm256_castsi256_si128(v.data), high = _mm256_extracti128_si256(v.data, 1);
    return {widen(low), widen(_mm_srli_si128(low, 8)), widen(high), widen(_mm_srli_si128(high, 8))};
  } else {
    std::array<int32_t, step<Arch>> wide;
    for (size_t i = 0; i < wide.size(); ++i) wide[i] = Signed ? static_cast<int8_t>(in[i]) : in[i];
    std::array<I<Arch>, 4> out;
    for (size_t k = 0; k < 4; ++k) out[k] = I<Arch>::load_unaligned(wide.data() + k * lanes<Arch>);
    return out;
  }
}

/// 2 * lanes 16-bit words as uint32 lanes.
template <class Arch>
XSIMD_INLINE std::array<U<Arch>, 2> load_halves(const uint16_t* in) noexcept {
  const U16<Arch> v = U16<Arch>::load_unaligned(in), zero(uint16_t{0});
  return {xsimd::bitwise_cast<uint32_t>(xsimd::zip_lo(v, zero)), xsimd::bitwise_cast<uint32_t>(xsimd::zip_hi(v, zero))};
}

/// 16-bit lanes of at most 255 to bytes: the lanes of a, then those of b.
template <class Arch>
XSIMD_INLINE U8<Arch> narrow_halves(const U16<Arch>& a, const U16<Arch>& b) noexcept {
  if constexpr (is_wasm<Arch>) {
    return wasm_u8x16_narrow_i16x8(a.data, b.data);
  } else if constexpr (is_sse<Arch>) {
    return _mm_packus_epi16(a.data, b.data);
  } else if constexpr (is_avx2<Arch>) {
    return _mm256_permute4x64_epi64(_mm256_packus_epi16(a.data, b.data), 0xD8);
  } else {
    std::array<uint8_t, U8<Arch>::size> out;
    for (size_t i = 0; i < U16<Arch>::size; ++i) {
      out[i] = static_cast<uint8_t>(a.get(i));
      out[U16<Arch>::size + i] = static_cast<uint8_t>(b.get(i));
    }
    return U8<Arch>::load_unaligned(out.data());
  }
}

/// Stores the first half of the register at one address, the second at another.
template <class Arch>
XSIMD_INLINE void store_apart(const U8<Arch>& v, uint8_t* first, uint8_t* second) noexcept {
  if constexpr (is_wasm<Arch>) {
    wasm_v128_store64_lane(first, v.data, 0);
    wasm_v128_store64_lane(second, v.data, 1);
  } else {
    std::array<uint8_t, step<Arch>> bytes;
    v.store_unaligned(bytes.data());
    std::memcpy(first, bytes.data(), bytes.size() / 2);
    std::memcpy(second, bytes.data() + bytes.size() / 2, bytes.size() / 2);
  }
}

/// The first half of a register.
template <class Arch>
XSIMD_INLINE void store_low_half(const U8<Arch>& v, uint8_t* to) noexcept {
  if constexpr (is_wasm<Arch>) {
    wasm_v128_store64_lane(to, v.data, 0);
  } else {
    std::array<uint8_t, step<Arch>> bytes;
    v.store_unaligned(bytes.data());
    std::memcpy(to, bytes.data(), bytes.size() / 2);
  }
}

/// Each pair of lanes swapped: 1 0 3 2 ...
template <class Arch>
XSIMD_INLINE F<Arch> swap_pairs(const F<Arch>& v) noexcept {
  if constexpr (is_wasm<Arch>) {
    return F<Arch>(wasm_i32x4_shuffle(v.data, v.data, 1, 0, 3, 2));
  } else if constexpr (is_sse<Arch>) {
    return _mm_shuffle_ps(v.data, v.data, 0xB1);
  } else if constexpr (is_avx2<Arch>) {
    return _mm256_permute_ps(v.data, 0xB1);
  } else {
    std::array<float, lanes<Arch>> out;
    for (size_t i = 0; i < out.size(); ++i) out[i] = v.get(i ^ 1);
    return load<Arch>(out.data());
  }
}

// ---- small floats. Magnitudes are codes or float32 bits without the sign.

/// Converts one format's magnitudes to codes and back.
template <class Arch>
struct MinifloatCodec {
  int shift;  // float32 mantissa bits minus those of the format
  I<Arch> min_normal;
  U<Arch> exponent, above, below_first, rebias;
  F<Arch> step;
  I<Arch> first_normal;

  explicit MinifloatCodec(const FloatFormat& f) noexcept
      : shift(23 - f.mantissa_bits),
        min_normal(static_cast<int32_t>(min_normal_of(f))),
        exponent(0x7F800000u),
        above(static_cast<uint32_t>(shift) << 23),
        below_first(min_normal_of(f) >> shift),
        rebias(static_cast<uint32_t>(127 - f.bias) << 23),
        step(std::bit_cast<float>(static_cast<uint32_t>(127 + 1 - f.bias - f.mantissa_bits) << 23)),
        first_normal(int32_t{1} << f.mantissa_bits) {}

  /// Nearest-even code of a finite magnitude; codes simply continue beyond the format's range. Adding a power of two
  /// whose last mantissa bit weighs one step of the magnitude's binade makes the adder round; the step is constant
  /// below the smallest normal number. The added last places count the steps from the binade's zero, including the
  /// hidden bit.
  XSIMD_INLINE U<Arch> encode(const F<Arch>& magnitude) const noexcept {
    const U<Arch> binade = xsimd::bitwise_cast<uint32_t>(max_int<Arch>(as_int<Arch>(magnitude), min_normal)) & exponent;
    const U<Arch> adder = binade + above;
    const U<Arch> steps = as_uint<Arch>(magnitude + as_float<Arch>(adder)) - adder;
    return steps + (binade >> shift) - below_first;
  }

  /// Value of a finite magnitude code. Forms no float32 subnormals: they slow processors down as operands.
  XSIMD_INLINE F<Arch> decode(const U<Arch>& code) const noexcept {
    const I<Arch> units = xsimd::bitwise_cast<int32_t>(code);
    const F<Arch> subnormal = xsimd::to_float(units) * step;
    const U<Arch> normal = (code << shift) + rebias;
    return as_float<Arch>(select<Arch>(units < first_normal, as_uint<Arch>(subnormal), normal));
  }

 private:
  static uint32_t min_normal_of(const FloatFormat& f) noexcept { return static_cast<uint32_t>(128 - f.bias) << 23; }
};

}  // namespace wasmquant::kernels::simd
