// Rotary position embedding (J. Su et al. 2021) of the first d dimensions of a head: dimension i rotates with dimension i + d / 2,
//   x_i' = x_i cos - x_(i+d/2) sin,   x_(i+d/2)' = x_(i+d/2) cos + x_i sin,   angle = position * frequency_i,
// or, in pairs, dimension 2 i with 2 i + 1.
#pragma once
#include <cstddef>
#include <vector>

#include "model/config/architecture.h"

namespace wasmquant::model {

/// What positions are multiplied by for the angle of each pair of a head's dimensions that rotate, with RoPE scaling applied.
/// `is_long`: for sequences longer than rope.original_positions.
std::vector<float> rotary_frequencies(const Rope& rope, uint32_t head_dim, bool is_long);

/// Precomputed sines and cosines.
class RotaryTable {
 public:
  RotaryTable() = default;
  /// For positions 0 to `positions` (exclusive). Angles are float32 products of float32 frequencies, as in training.
  /// `is_long`: for sequences longer than rope.original_positions.
  RotaryTable(const Rope& rope, uint32_t head_dim, size_t positions, bool is_long = false);

  bool empty() const noexcept { return cosine_.empty(); }
  /// Rotates one head, `x` [head_dim], in place.
  void apply(float* x, size_t position) const noexcept;

 private:
  size_t half_ = 0;
  bool is_pairs_ = false;
  std::vector<float> cosine_, sine_;  // [positions, half_]
};

}  // namespace wasmquant::model
