// Bias correction: adds the change that quantization causes in the mean of a layer's output to its bias. Each layer
// gets the inputs of the float network, so errors do not accumulate.
//   bias += mean over batches of (mean over the batch of float output - quantized output), per output channel
// Source: M. Nagel et al., "Data-Free Quantization Through Weight Equalization and Bias Correction", 2019; Brevitas'
// form (aihwkit-brevitas 3).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"

namespace wasmquant {

/// Accumulates the change of one layer's output.
class BiasCorrection {
 public:
  /// Outputs are [*, channels, inner]; inner is 1 for linear layers, the positions for convolutions.
  explicit BiasCorrection(size_t channels, size_t inner = 1) : inner_(inner), sums_(channels) {}

  /// One batch with the same inputs for both; batches have equal weight. In float64, rows in order. Errors, with the
  /// state unchanged: shape-mismatch, value-not-finite (names the element).
  Status add(std::span<const float> output, std::span<const float> quantized_output);
  /// Corrects `bias` [channels], zeros for a layer without one. Errors: shape-mismatch, state-invalid (no batch).
  Status correct(std::span<float> bias) const;

 private:
  size_t inner_;
  uint64_t batches_ = 0;
  std::vector<double> sums_;  // of the batches' means
};

}  // namespace wasmquant
