// Bias correction: a bias takes over what quantization changes in the mean of its layer's output. Each layer gets the
// inputs of the float network, so errors do not accumulate.
// Source: M. Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019; Brevitas'
// form (aihwkit-brevitas 3).
#pragma once
#include <cstdint>
#include <span>

namespace wasmquant {

/// bias [rows] += (weight - quantized) mean(x), for weights [rows, columns] and inputs x summed over `tokens` (> 0) in
/// `sums` [columns]. In float64, columns in order.
void correct_bias(std::span<const float> weight, std::span<const float> quantized, std::span<const double> sums,
                  uint64_t tokens, std::span<float> bias) noexcept;

}  // namespace wasmquant
