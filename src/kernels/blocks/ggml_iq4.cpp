// The sixteen non-uniform values of iq4_nl and iq4_xs. Value i begins at the midpoint of values i - 1 and i. Midpoints
// are multiples of 1/2, so floor(2 v) determines the code, which a table holds.
#include <bit>

#include "kernels/dispatch.h"
#include "kernels/ggml_weights.h"

namespace wasmquant::kernels {

inline constexpr size_t kTwice = 512;  // floor(2 v) + 256, clamped

struct Iq4Tables {
  uint8_t code[kTwice];
  float value[kTwice];
};
inline constexpr Iq4Tables kIq4 = [] {
  Iq4Tables t{};
  for (int32_t k = 0; k < int32_t{kTwice}; ++k) {
    uint8_t code = 0;
    while (code < 15 && k - 256 >= kIq4Values[code] + kIq4Values[code + 1]) ++code;
    t.code[k] = code;
    t.value[k] = kIq4Values[code];
  }
  return t;
}();

/// Index into the tables; NaN gets the index of the largest value.
template <class Arch>
struct Iq4Index {
  simd::F<Arch> low = simd::constant<Arch>(-256.0f), high = simd::constant<Arch>(255.0f);
  simd::F<Arch> shifter = simd::constant<Arch>(8388608.0f + 256.0f);
  simd::U<Arch> mask = simd::constant<Arch>(uint32_t{kTwice - 1});
  XSIMD_INLINE void operator()(const simd::F<Arch>& twice, uint32_t* index) const noexcept {
    const simd::F<Arch> bounded = simd::larger<Arch>(low, simd::smaller<Arch>(high, twice));
    (simd::as_uint<Arch>(simd::round<Arch>(RoundMethod::floor, bounded) + shifter) & mask).store_unaligned(index);
  }
};

struct Iq4Codes {
  template <class Arch>
  void operator()(Arch, const float* x, size_t count, size_t run, const float* factor, uint8_t* codes) const noexcept {
    constexpr size_t kLanes = simd::lanes<Arch>;
    const Iq4Index<Arch> index_of;
    const int run_bits = std::countr_zero(run);
    uint32_t index[32];
    for (size_t block = 0; block < count; block += 32) {
      const simd::F<Arch> by(factor[block >> run_bits]);
      for (size_t i = 0; i < 32; i += kLanes) {
        const simd::F<Arch> v = simd::load<Arch>(x + block + i) * by;  // 2 * by might be infinite
        index_of(v + v, index + i);
      }
      for (size_t i = 0; i < 32; ++i) codes[block + i] = kIq4.code[index[i]];
    }
  }
};

struct SearchIq4 {
  template <class Arch>
  void operator()(Arch, const SearchInput& in, float* scale_out) const noexcept {
    using W = Eight<Arch>;
    const size_t n = in.length == 16 ? 16 : 32;
    const WeightedLanes<Arch> lanes(in);
    const W zero = W::all(0.0f);
    const W extreme = extreme_of<Arch>(lanes.x, n);
    const auto is_empty = extreme.magnitude() < W::all(kEmptyBelow);
    const W divisor = is_empty.choose(W::all(1.0f), extreme);

    const Iq4Index<Arch> index_of;
    uint32_t index[32 * kSearchWidth];
    float value[32 * kSearchWidth];
    W sum_xq, sum_q2;
    const auto fit = [&](const W& factor) {
      const W twice = factor + factor;
      for (size_t i = 0; i < n; ++i)
        for (size_t k = 0; k < W::kParts; ++k)
          index_of(twice.part[k] * lanes.x[i].part[k], index + i * kSearchWidth + k * simd::lanes<Arch>);
      for (size_t i = 0; i < n * kSearchWidth; ++i) value[i] = kIq4.value[index[i]];
      sum_xq = sum_q2 = zero;
      for (size_t i = 0; i < n; ++i) {
        const W q = W::load(value + i * kSearchWidth), weighted = lanes.w[i] * q;
        sum_xq = sum_xq + weighted * lanes.x[i];
        sum_q2 = sum_q2 + weighted * q;
      }
    };
    const W first = W::all(kIq4Values[0]);
    fit(W::all(1.0f) / (divisor.negated() / first));
    W scale = (sum_q2 > zero).choose(sum_xq / sum_q2, zero), best = scale * sum_xq;
    for (int32_t k = -7; k <= 7; ++k) {
      fit(W::all(static_cast<float>(k + kIq4Values[0])) / divisor);
      const auto is_better = (sum_q2 > zero) & (sum_xq * sum_xq > best * sum_q2);
      scale = is_better.choose(sum_xq / sum_q2, scale);
      best = is_better.choose(scale * sum_xq, best);
    }
    is_empty.choose(zero, scale).store(scale_out);
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

void iq4_codes(const float* x, size_t count, size_t run, const float* factor, uint8_t* codes) noexcept {
  kernels::run<Iq4Codes>(x, count, run, factor, codes);
}
void search_iq4(const SearchInput& in, float* scale) noexcept { run<SearchIq4>(in, scale); }

}  // namespace WASMQUANT_ENTRY_NAMESPACE
