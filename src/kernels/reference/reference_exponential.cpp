// Oracles of exponential.cpp.
#include <bit>
#include <cmath>

#include "kernels/exponential_terms.h"
#include "kernels/reference/reference.h"

namespace wasmquant::kernels::reference {
namespace {

float tanh(float v) noexcept {
  const float e = exp(std::fabs(v) * -2.0f);
  return std::copysign((1.0f - e) / (1.0f + e), v);
}

float logistic(float v) noexcept { return 1.0f / (1.0f + exp(0.0f - v)); }

float erf(float v) noexcept {
  const float x = std::fabs(v), t = 1.0f / (1.0f + kErfSlope * x);
  float series = kErfTerms[0];
  for (size_t k = 1; k < kErfTerms.size(); ++k) series = series * t + kErfTerms[k];
  return std::copysign(1.0f - series * t * exp(0.0f - x * x), v);
}

float gate_factor(Activation activation, float g) noexcept {
  switch (activation) {
    case Activation::silu:
      return logistic(g);
    case Activation::gelu_tanh:
      return logistic(kGeluSlope * (g + kGeluCubic * (g * g * g)));
    case Activation::gelu:
      return 0.5f + 0.5f * erf(g * kInverseSqrt2);
    case Activation::relu:
      return g < 0 ? 0.0f : 1.0f;
    case Activation::squared_relu:
      return g < 0 ? 0.0f : g;
  }
  return 0;
}

}  // namespace

float exp(float x) noexcept {
  x = x < kLeastExponent ? kLeastExponent : x;
  x = x > kLargestExponent ? kLargestExponent : x;
  const float shifted = x * kInverseLn2 + kShifter;
  const float n = shifted - kShifter;
  const float r = (x - n * kLn2High) - n * kLn2Low;
  float series = kExpTerms[0];
  for (size_t k = 1; k < kExpTerms.size(); ++k) series = series * r + kExpTerms[k];
  return series * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127u) << 23);
}

float sum_of_halves(std::array<float, 16> sums) noexcept {
  for (size_t width = sums.size() / 2; width > 0; width /= 2)
    for (size_t i = 0; i < width; ++i) sums[i] += sums[i + width];
  return sums[0];
}

float exponentials(std::span<const float> x, float shift, float* y) noexcept {
  std::array<float, 16> sums{};
  for (size_t i = 0; i < x.size(); ++i) sums[i % sums.size()] += y[i] = exp(x[i] - shift);
  return sum_of_halves(sums);
}

void soft_cap(std::span<float> x, float cap) noexcept {
  for (float& v : x) v = cap * tanh(v / cap);
}

void activate_gate(Activation activation, std::span<float> gate, const float* up) noexcept {
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] * gate_factor(activation, gate[i]) * up[i];
}

}  // namespace wasmquant::kernels::reference
