// Statistics of a layer's inputs for second-order and scale-searching algorithms: the largest and the mean |x| per
// column, and on demand the Hessian.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/hessian.h"
#include "core/result.h"

namespace wasmquant {

/// Accumulates the statistics of one layer input.
class InputStatistics {
 public:
  /// `share`: the rows of the Hessian that are summed.
  InputStatistics(size_t columns, bool with_hessian, HessianShare share = {});

  /// x [tokens, columns]. Splitting over calls changes nothing. Errors: shape-mismatch, value-not-finite.
  Status add(std::span<const float> x);

  uint64_t tokens() const noexcept { return tokens_; }
  /// [columns]
  const std::vector<float>& largest() const noexcept { return largest_; }
  /// [columns]; zeros when nothing was added.
  std::vector<float> mean() const;
  /// HessianAccumulator::band; empty without a Hessian.
  std::span<float> hessian_band(size_t member) noexcept {
    return hessian_ ? hessian_->band(member) : std::span<float>();
  }
  /// H = 2 / tokens X^T X, [columns, columns]; consumed. Error: state-invalid if not requested or nothing was added.
  Result<std::vector<float>> finish_hessian();

 private:
  uint64_t tokens_ = 0;
  std::vector<float> largest_;
  std::vector<double> sum_;
  std::optional<HessianAccumulator> hessian_;
};

}  // namespace wasmquant
