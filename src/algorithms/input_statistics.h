// What second-order and scale-searching algorithms want to know about a layer's inputs: per column the largest and the
// mean |x|, and on demand the Hessian.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "algorithms/hessian.h"
#include "core/result.h"

namespace wasmquant {

class InputStatistics {
 public:
  InputStatistics(size_t columns, bool with_hessian);

  /// x [tokens, columns]. Tokens are taken in order; how they are split over calls changes nothing. Errors:
  /// shape-mismatch, value-not-finite.
  Status add(std::span<const float> x);

  uint64_t tokens() const noexcept { return tokens_; }
  /// [columns]
  const std::vector<float>& largest() const noexcept { return largest_; }
  /// [columns]; zeros when nothing was added.
  std::vector<float> mean() const;
  /// 2 / tokens X^T X, [columns, columns]; spends it. Error: state-invalid when it was not asked for, or nothing was
  /// added.
  Result<std::vector<float>> finish_hessian();

 private:
  uint64_t tokens_ = 0;
  std::vector<float> largest_;
  std::vector<double> sum_;
  std::optional<HessianAccumulator> hessian_;
};

}  // namespace wasmquant
