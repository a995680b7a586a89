// exp(x) = 2^n exp(r),  n = round(x / ln 2),  r = x - n ln 2,  |r| <= ln(2) / 2: Taylor terms to r^7, error 6e-9.
#include "kernels/exponential.h"

#include <array>

#include "kernels/dispatch.h"
#include "kernels/exponential_terms.h"
#include "kernels/kernels.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels {
namespace {

constexpr size_t kSums = 16;

/// Element functions in lanes. reference.cpp has the scalar versions.
template <class Arch>
struct Lanes {
  using F = simd::F<Arch>;
  static XSIMD_INLINE F c(float v) noexcept { return simd::constant<Arch>(v); }

  static XSIMD_INLINE F exp(const F& any) noexcept {
    const F x = simd::clamp<Arch>(any, c(kLeastExponent), c(kLargestExponent));
    const F shifted = x * c(kInverseLn2) + c(kShifter);
    const F n = shifted - c(kShifter);
    const F r = (x - n * c(kLn2High)) - n * c(kLn2Low);
    F series = c(kExpTerms[0]);
    for (size_t k = 1; k < kExpTerms.size(); ++k) series = series * r + c(kExpTerms[k]);
    // The low bits of `shifted` are n; with the bias they become the exponent of 2^n.
    const simd::U<Arch> power = (simd::as_uint<Arch>(shifted) + simd::U<Arch>(127u)) << 23;
    return series * simd::as_float<Arch>(power);
  }
  static XSIMD_INLINE F magnitude(const F& v) noexcept {
    return simd::as_float<Arch>(simd::as_uint<Arch>(v) & simd::U<Arch>(0x7FFFFFFFu));
  }
  static XSIMD_INLINE F with_sign_of(const F& v, const F& sign) noexcept {
    return simd::as_float<Arch>(simd::as_uint<Arch>(v) | (simd::as_uint<Arch>(sign) & simd::U<Arch>(0x80000000u)));
  }
  static XSIMD_INLINE F tanh(const F& v) noexcept {
    const F e = exp(magnitude(v) * c(-2.0f));
    return with_sign_of((c(1.0f) - e) / (c(1.0f) + e), v);
  }
  static XSIMD_INLINE F logistic(const F& v) noexcept { return c(1.0f) / (c(1.0f) + exp(c(0.0f) - v)); }
  static XSIMD_INLINE F erf(const F& v) noexcept {
    const F x = magnitude(v), t = c(1.0f) / (c(1.0f) + c(kErfSlope) * x);
    F series = c(kErfTerms[0]);
    for (size_t k = 1; k < kErfTerms.size(); ++k) series = series * t + c(kErfTerms[k]);
    return with_sign_of(c(1.0f) - series * t * exp(c(0.0f) - x * x), v);
  }
};

}  // namespace

struct Exponentials {
  template <class Arch>
  float operator()(Arch, std::span<const float> x, float shift, float* y) const noexcept {
    using F = simd::F<Arch>;
    constexpr size_t kLanes = simd::lanes<Arch>, kRegisters = kSums / kLanes;
    const F by(shift);
    size_t i = 0;
    for (; i + kLanes <= x.size(); i += kLanes)
      Lanes<Arch>::exp(simd::load<Arch>(x.data() + i) - by).store_unaligned(y + i);
    for (; i < x.size(); ++i) y[i] = reference::exp(x[i] - shift);
    // Separate sums: one copy of the code above, and they stay in registers.
    std::array<F, kRegisters> sum;
    sum.fill(F(0.0f));
    for (i = 0; i + kSums <= x.size(); i += kSums)
      for (size_t k = 0; k < kRegisters; ++k) sum[k] = sum[k] + simd::load<Arch>(y + i + k * kLanes);
    std::array<float, kSums> sums;
    for (size_t k = 0; k < kRegisters; ++k) sum[k].store_unaligned(sums.data() + k * kLanes);
    for (size_t k = 0; i + k < x.size(); ++k) sums[k] += y[i + k];
    return reference::sum_of_halves(sums);
  }
};

struct SoftCap {
  template <class Arch>
  void operator()(Arch, std::span<float> x, float cap) const noexcept {
    const simd::F<Arch> bound(cap);
    size_t i = 0;
    for (; i + simd::lanes<Arch> <= x.size(); i += simd::lanes<Arch>)
      (bound * Lanes<Arch>::tanh(simd::load<Arch>(x.data() + i) / bound)).store_unaligned(x.data() + i);
    if (i < x.size()) reference::soft_cap(x.subspan(i), cap);
  }
};

template <Activation activation>
struct ActivateGate {
  template <class Arch>
  void operator()(Arch, std::span<float> gate, const float* up) const noexcept {
    using F = simd::F<Arch>;
    using L = Lanes<Arch>;
    size_t i = 0;
    for (; i + simd::lanes<Arch> <= gate.size(); i += simd::lanes<Arch>) {
      const F g = simd::load<Arch>(gate.data() + i);
      F factor;
      if constexpr (activation == Activation::silu) {
        factor = L::logistic(g);
      } else if constexpr (activation == Activation::gelu_tanh) {
        factor = L::logistic(L::c(kGeluSlope) * (g + L::c(kGeluCubic) * (g * g * g)));
      } else {
        factor = L::c(0.5f) + L::c(0.5f) * L::erf(g * L::c(kInverseSqrt2));
      }
      (g * factor * simd::load<Arch>(up + i)).store_unaligned(gate.data() + i);
    }
    if (i < gate.size()) reference::activate_gate(activation, gate.subspan(i), up + i);
  }
};

}  // namespace wasmquant::kernels

namespace WASMQUANT_ENTRY_NAMESPACE {

float exponentials(std::span<const float> x, float shift, float* y) noexcept {
  return kernels::run<Exponentials>(x, shift, y);
}

void softmax(std::span<float> x) noexcept {
  const float inverse = 1.0f / exponentials(x, reduce_extent(x).max, x.data());
  for (float& v : x) v *= inverse;
}

void soft_cap(std::span<float> x, float cap) noexcept { kernels::run<SoftCap>(x, cap); }

void activate_gate(Activation activation, std::span<float> gate, const float* up) noexcept {
  switch (activation) {
    case Activation::silu:
      return kernels::run<ActivateGate<Activation::silu>>(gate, up);
    case Activation::gelu_tanh:
      return kernels::run<ActivateGate<Activation::gelu_tanh>>(gate, up);
    case Activation::gelu:
      return kernels::run<ActivateGate<Activation::gelu>>(gate, up);
    case Activation::relu:
    case Activation::squared_relu:  // without exponentials
      return kernels::reference::activate_gate(activation, gate, up);
  }
}

}  // namespace WASMQUANT_ENTRY_NAMESPACE
