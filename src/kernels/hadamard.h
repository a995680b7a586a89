// Rotations by Hadamard matrices: x R = x D (H_K (x) H_P) / sqrt(K P) for a row x, where K P is its length or the
// length of the blocks it is cut into, P is a power of two, and D is the identity or random signs. R R^T = I.
//   H_P   Sylvester's, by butterflies
//   H_K   R. Paley's, "On Orthogonal Matrices" (1933), of the squares modulo a prime q:
//         K = q + 1, q = 3 mod 4:     I + [[0, 1], [-1, Q]],             Q_ij = 1, -1 or 0 as i - j is a square or not
//         K = 2 (q + 1), q = 1 mod 4: C (x) [[1, 1], [1, -1]] + I (x) [[1, -1], [-1, -1]],  C = [[0, 1], [1, Q]]
// Use: S. Ashkboos et al., "QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs", 2024; AMD Quark (spec 7.8).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/result.h"

namespace wasmquant {

/// A rotation with its working memory.
class Hadamard {
 public:
  Hadamard() = default;
  /// For rows of `size` values in blocks of `block`, which divides `size`. `seed` gives the random signs; none without
  /// it. Errors: shape-mismatch (block does not divide size), not-implemented (no matrix of that order is known).
  static Result<Hadamard> create(size_t size, size_t block, std::optional<uint64_t> seed);

  size_t size() const noexcept { return size_; }
  /// x <- x R, of size() values.
  void multiply(double* x) noexcept;

 private:
  size_t size_ = 0, block_ = 1, core_ = 1;
  std::vector<float> matrix_;   // H_K [K, K], signs
  std::vector<float> signs_;    // of D, [size]; empty: ones
  std::vector<double> column_;  // working memory
};

}  // namespace wasmquant
