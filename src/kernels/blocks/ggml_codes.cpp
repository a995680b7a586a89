// Elements to codes for the GGUF block types, once the scales are known (ggml_stages.h).
#include <bit>

#include "kernels/dispatch.h"
#include "kernels/eight.h"
#include "kernels/ggml_stages.h"

namespace wasmquant::kernels {

struct BlockExtents {
  template <class Arch>
  void operator()(Arch, const float* x, size_t runs, float* low, float* high) const noexcept {
    using F = simd::F<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    // kLanes runs at a time: a column of minima each; halving merges them into one register, lane r for run r.
    for (; runs >= kLanes; runs -= kLanes, low += kLanes, high += kLanes) {
      std::array<F, kLanes> smallest, largest;
      for (size_t r = 0; r < kLanes; ++r, x += kExtentRun) {
        smallest[r] = largest[r] = simd::load<Arch>(x);
        for (size_t i = kLanes; i < kExtentRun; i += kLanes) {
          const F v = simd::load<Arch>(x + i);
          smallest[r] = simd::smaller<Arch>(smallest[r], v);
          largest[r] = simd::larger<Arch>(largest[r], v);
        }
      }
      for (size_t half = kLanes / 2; half > 0; half /= 2) {
        for (size_t r = 0; r < half; ++r) {
          smallest[r] = simd::smaller<Arch>(xsimd::zip_lo(smallest[r], smallest[r + half]),
                                            xsimd::zip_hi(smallest[r], smallest[r + half]));
          largest[r] = simd::larger<Arch>(xsimd::zip_lo(largest[r], largest[r + half]),
                                          xsimd::zip_hi(largest[r], largest[r + half]));
        }
      }
      smallest[0].store_unaligned(low);
      largest[0].store_unaligned(high);
    }
    for (size_t r = 0; r < runs; ++r) {
      low[r] = high[r] = x[r * kExtentRun];
      for (size_t i = 1; i < kExtentRun; ++i) {
        const float v = x[r * kExtentRun + i];
        low[r] = v < low[r] ? v : low[r];
        high[r] = v > high[r] ? v : high[r];
      }
    }
  }
};

template <Coding coding>
struct BlockCodes {
  template <class Arch>
  void operator()(Arch, const float* x, size_t count, size_t run, const float* add, const float* factor,
                  const CodeRange& range, uint8_t* codes) const noexcept {
    using F = simd::F<Arch>;
    using U = simd::U<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>;
    const F low = simd::constant<Arch>(range.low), high = simd::constant<Arch>(range.high);
    const U offset = simd::constant<Arch>(static_cast<uint32_t>(range.offset)), low_byte = simd::constant<Arch>(0xFFu);
    const simd::NearestInt<Arch> nearest;
    const int run_bits = std::countr_zero(run);
    const auto code_of = [&](size_t at) {
      const size_t r = at >> run_bits;
      const F shifted = simd::load<Arch>(x + at) + F(add[r]), by(factor[r]);
      F position = coding == Coding::divided ? shifted / by : shifted * by;
      if constexpr (coding == Coding::away)
        position = simd::round<Arch>(RoundMethod::half_away, position);
      else if constexpr (coding == Coding::nearest)
        position = simd::smaller<Arch>(simd::larger<Arch>(low, position), high);
      else
        position = nearest_wrapped<Arch>(position, low, high);
      return (nearest.bits(position) + offset) & low_byte;
    };
    for (size_t i = 0; i < count; i += simd::step<Arch>) {
      std::array<U, 4> q;
      for (size_t k = 0; k < 4; ++k) q[k] = code_of(i + k * kLanes);
      simd::narrow_bytes<Arch>(q).store_unaligned(codes + i);
    }
  }
};

/// Magnitude code = how many midpoints between neighbouring values |x| exceeds; zero loses its sign.
struct Fp4Codes {
  template <class Arch>
  void operator()(Arch, const float* x, size_t count, const float* factor, uint8_t* codes) const noexcept {
    using F = simd::F<Arch>;
    using U = simd::U<Arch>;
    const U no_sign = simd::constant<Arch>(0x7FFFFFFFu), sign = simd::constant<Arch>(8u),
            one = simd::constant<Arch>(1u);
    std::array<F, 7> middle;
    constexpr float kMiddles[7] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5};
    for (size_t k = 0; k < 7; ++k) middle[k] = simd::constant<Arch>(kMiddles[k]);
    for (size_t i = 0; i < count; i += simd::step<Arch>) {
      const F by(factor[i / 32]);
      std::array<U, 4> q;
      for (size_t k = 0; k < 4; ++k) {
        const F v = simd::load<Arch>(x + i + k * simd::lanes<Arch>) * by;
        const F magnitude = simd::as_float<Arch>(simd::as_uint<Arch>(v) & no_sign);
        U code = simd::when<Arch>(magnitude > middle[0], one);
        const U minus = simd::when<Arch>(magnitude > middle[0], simd::as_uint<Arch>(v) >> 28 & sign);
        for (size_t m = 1; m < 7; ++m) code += simd::when<Arch>(magnitude > middle[m], one);
        q[k] = code | minus;
      }
      simd::narrow_bytes<Arch>(q).store_unaligned(codes + i);
    }
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

void block_extents(const float* x, size_t runs, float* low, float* high) noexcept {
  run<BlockExtents>(x, runs, low, high);
}

void block_codes(Coding coding, const float* x, size_t count, size_t run, const float* add, const float* factor,
                 const CodeRange& range, uint8_t* codes) noexcept {
  switch (coding) {
    case Coding::nearest:
      return kernels::run<BlockCodes<Coding::nearest>>(x, count, run, add, factor, range, codes);
    case Coding::wrapped:
      return kernels::run<BlockCodes<Coding::wrapped>>(x, count, run, add, factor, range, codes);
    case Coding::divided:
      return kernels::run<BlockCodes<Coding::divided>>(x, count, run, add, factor, range, codes);
    case Coding::away:
      return kernels::run<BlockCodes<Coding::away>>(x, count, run, add, factor, range, codes);
  }
}

void fp4_codes(const float* x, size_t count, const float* factor, uint8_t* codes) noexcept {
  run<Fp4Codes>(x, count, factor, codes);
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
