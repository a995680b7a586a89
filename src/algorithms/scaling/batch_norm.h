// Batch norms at inference are a scale and an offset per channel, which the layer before can take over.
//   g = weight / sqrt(variance + epsilon);   W *= g per output channel;   bias = bias * g + offset - mean * g
// Valid only if nothing else reads that layer's output. Source: Brevitas (aihwkit-brevitas 3).
#pragma once
#include <span>

#include "core/result.h"

namespace wasmquant {

/// All [channels]. weight and offset are gamma and beta; empty ones count as ones and zeros.
struct BatchNorm {
  std::span<const float> weight, offset, mean, variance;
  double epsilon = 1e-5;
};

/// weight [channels, columns], in float32. bias [channels], zeros for a layer without one.
/// Errors, with nothing changed: shape-mismatch, value-not-finite (names the channel).
Status fold_batch_norm(const BatchNorm& norm, std::span<float> weight, std::span<float> bias);

}  // namespace wasmquant
