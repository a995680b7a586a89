// The transcendental functions of a transformer, built from additions, multiplications and divisions, so that every
// platform gives the same bits (C libraries differ). Exponentials have a relative error below 2e-7.
#pragma once
#include <cstdint>
#include <span>

namespace wasmquant::kernels {

/// y[i] = exp(x[i] - shift), and returns their sum. x[i] - shift is clamped to -87..88. The sum runs over 16
/// interleaved float32 sums (element i in sum i % 16), added as a tree of halves. y may be x. NaN stays NaN.
float exponentials(std::span<const float> x, float shift, float* y) noexcept;

/// x[i] to exp(x[i]) / sum_j exp(x[j]), shifted by the largest x.
void softmax(std::span<float> x) noexcept;

/// x[i] to cap * tanh(x[i] / cap); the absolute error is below 2e-7 cap.
void soft_cap(std::span<float> x, float cap) noexcept;

/// Activation functions of feed-forward blocks.
enum class Activation : uint8_t {
  silu,       // g / (1 + exp(-g))
  gelu_tanh,  // g / 2 (1 + tanh(sqrt(2 / pi) (g + 0.044715 g^3)))
  gelu,       // g / 2 (1 + erf(g / sqrt(2))); erf to 2e-7 (M. Abramowitz, I. Stegun 1964, 7.1.26)
  relu,       // max(g, 0)
  squared_relu
};

/// The gated unit of a feed-forward block: gate[i] to activation(gate[i]) * up[i].
void activate_gate(Activation activation, std::span<float> gate, const float* up) noexcept;

}  // namespace wasmquant::kernels
