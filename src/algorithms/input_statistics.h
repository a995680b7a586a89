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
  /// `share`: the rows of the Hessian that are summed. `holds_out`: the last quarter of the tokens of each call is summed
  /// apart, too.
  InputStatistics(size_t columns, bool with_hessian, TeamShare share = {}, bool holds_out = false);

  /// x [tokens, columns]. Splitting over calls changes nothing but what is held out. Errors: shape-mismatch,
  /// value-not-finite.
  Status add(std::span<const float> x);

  uint64_t tokens() const noexcept { return tokens_; }
  /// [columns]
  const std::vector<float>& largest() const noexcept { return largest_; }
  /// [columns]; zeros when nothing was added.
  std::vector<float> mean() const;
  uint64_t held_out_tokens() const noexcept { return held_out_tokens_; }
  /// HessianAccumulator::band; empty without a Hessian.
  std::span<float> hessian_band(size_t member) noexcept { return band_of(hessian_, member); }
  std::span<float> held_out_band(size_t member) noexcept { return band_of(held_out_, member); }
  /// H = 2 / tokens X^T X, [columns, columns]; consumed. Error: state-invalid if not requested or nothing was added.
  Result<std::vector<float>> finish_hessian();
  /// That of the tokens held out; empty if there are none. Call before finish_hessian().
  std::vector<float> finish_held_out();

 private:
  static std::span<float> band_of(std::optional<HessianAccumulator>& of, size_t member) noexcept {
    return of ? of->band(member) : std::span<float>();
  }

  uint64_t tokens_ = 0, held_out_tokens_ = 0;
  std::vector<float> largest_;
  std::vector<double> sum_;
  std::optional<HessianAccumulator> hessian_, held_out_;
};

}  // namespace wasmquant
