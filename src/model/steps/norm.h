// RMSNorm (B. Zhang, R. Sennrich 2019):  y = x / sqrt(mean(x^2) + epsilon) * weight, per row. LayerNorm (J. Ba, J. Kiros, G. Hinton
// 2016):  y = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias.
#pragma once
#include <cstddef>
#include <span>

namespace wasmquant::model {

/// The parameters of a norm.
struct Norm {
  double epsilon;
  bool plus_one = false;  // multiplies by 1 + weight
  bool centers = false;   // LayerNorm
};

/// x, y [rows, columns]; weight [columns], or empty: ones; bias [columns] or empty: zeros, of norms that center. Means are taken in float64,
/// in order. y may be x.
void normalize(const Norm& norm, std::span<const float> weight, std::span<const float> bias, const float* x,
               size_t rows, size_t columns, float* y) noexcept;

}  // namespace wasmquant::model
