// Rotary position embedding (J. Su et al. 2021) in the layout of Hugging Face checkpoints: dimension i of a head
// rotates with dimension i + head_dim / 2,
//   x_i' = x_i cos - x_(i+d/2) sin,   x_(i+d/2)' = x_(i+d/2) cos + x_i sin,   angle = position * frequency_i.
#pragma once
#include <cstddef>
#include <vector>

#include "model/architecture.h"

namespace wasmquant::model {

/// Precomputed sines and cosines.
class RotaryTable {
 public:
  RotaryTable() = default;
  /// For positions 0 to `positions` (exclusive). Angles are float32 products of float32 frequencies, as in training.
  RotaryTable(const Rope& rope, size_t head_dim, size_t positions);

  /// Rotates one head, `x` [head_dim], in place.
  void apply(float* x, size_t position) const noexcept;

 private:
  size_t half_ = 0;
  std::vector<float> cosine_, sine_;  // [positions, head_dim / 2]
};

}  // namespace wasmquant::model
