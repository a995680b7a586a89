// RMSNorm (B. Zhang, R. Sennrich 2019):  y = x / sqrt(mean(x^2) + epsilon) * weight, per row. LayerNorm (J. Ba, J. Kiros, G. Hinton
// 2016):  y = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias.
#pragma once
#include <cstddef>
#include <span>

namespace wasmquant::model {

/// The parameters of a norm.
struct Norm {
  double epsilon;
  bool plus_one;  // Gemma multiplies by 1 + weight
};

/// x, y [rows, weight.size()]. The mean is taken in float64, in order. y may be x.
void normalize(const Norm& norm, std::span<const float> weight, const float* x, size_t rows, float* y) noexcept;

/// x [rows, weight.size()], in place. Mean and variance are taken in float64, in order.
void center_and_normalize(double epsilon, std::span<const float> weight, std::span<const float> bias, float* x,
                          size_t rows) noexcept;

}  // namespace wasmquant::model
