// Brevitas' statistics (aihwkit-brevitas 2.5, 2.7): each batch gives a threshold t and, for asymmetric specs, a lower
// end l <= 0; both are averaged over batches with equal weight, as m <- m k/(k+1) + new/(k+1) in float32, and then
// become the scale and zero point. t is at least GridRule::smallest_threshold.
//   mean_max         t = max|x|, or max - l with l = min(min, 0)
//   mean_percentile  the same with k-th smallest values: of |x| k = floor(0.01 p n + 0.5); for l, ceil(0.01 (100 - p)
//   n) threshold_mse    t of 20 down from the above with the least squared error, l fixed; then l of 20, t fixed
//   mean_threshold_mse  the same without power-of-two thresholds; t is searched with the l that the batch before left
// The data of a batch is kept until it is complete; with asymmetric mean_threshold_mse, that of all batches until
// finish.
#pragma once
#include "observers/observer.h"

namespace wasmquant {

class ThresholdObserver final : public Observer {
 public:
  ThresholdObserver(const QuantizationSpec& spec, ObserverMethod method, const ObserverOptions& options);

 private:
  /// [scales]: t, then [scales]: l.
  std::vector<float> summary_of(size_t index) const override;
  void choose(Observation& observation) const override;
  // `left`: the lower ends that the batch before has left, if any.
  std::vector<float> thresholds_of(size_t index, const std::vector<float>* left) const;

  ObserverMethod method_;
  ObserverOptions options_;
};

}  // namespace wasmquant
