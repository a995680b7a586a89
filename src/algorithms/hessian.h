// The Hessian of a layer's squared output error with respect to one row of its weight, H = 2/N sum x x^T over the
// layer's inputs x: GPTQ's running mean H <- H n/(n+k) + 2/(n+k) X^T X (E. Frantar et al. 2022; AMD Quark), summed,
// divided once.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/team_share.h"

namespace wasmquant {

/// Accumulates H from a layer's inputs. Members of a team that see the same inputs each sum a band of rows of about the
/// same work.
class HessianAccumulator {
 public:
  /// For inputs with this many features.
  explicit HessianAccumulator(size_t columns, TeamShare share = {});

  /// x [tokens, columns] counts as `samples` in the mean (Quark: sequences, 1 for a bare matrix). Rows are summed in
  /// order, in panels that ignore batch boundaries: the result is the same to the bit however rows are split over
  /// calls, as long as `samples` add up to the same. Errors, with the state unchanged: shape-mismatch (not whole rows),
  /// value-not-finite (names row and column).
  Status add(std::span<const float> x, uint64_t samples);

  /// The rows of the sum that a member has, after the last add(); those of the others are to be filled in before finish().
  std::span<float> band(size_t member) noexcept;

  /// H [columns, columns], both triangles. Consumes the accumulator. Error: state-invalid when nothing was added.
  Result<std::vector<float>> finish() &&;

 private:
  void sum_panel(const float* x, size_t rows) noexcept;
  void sum_rest() noexcept;
  size_t first_row(size_t member) const noexcept;

  size_t columns_;
  TeamShare share_;
  uint64_t samples_ = 0;
  size_t panel_rows_ = 0;
  std::vector<float> panel_;  // rows not summed yet, [kProductDepth, columns]
  std::vector<float> sum_;    // upper triangle of sum x x^T
};

}  // namespace wasmquant
