// xIELU (A. Huang, M. Rohrbach 2024), with numbers that each layer learns: p = softplus(alpha_p), n = beta + softplus(alpha_n),
//   y = p x^2 + beta x for positive x, else   n (exp(min(x, eps)) - 1 - x) + beta x
// Source: transformers, activations.py, XIELUActivation.
#pragma once
#include <span>

namespace wasmquant::model {

/// As a checkpoint has them.
struct LearnedActivation {
  float alpha_p, alpha_n, beta, eps;

  /// values[i] to its activation.
  void apply(std::span<float> values) const noexcept;
};

}  // namespace wasmquant::model
