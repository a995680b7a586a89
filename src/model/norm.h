// RMSNorm (B. Zhang, R. Sennrich 2019):  y = x / sqrt(mean(x^2) + epsilon) * weight, per row.
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

}  // namespace wasmquant::model
