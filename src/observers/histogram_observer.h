// per_tensor observers that choose a range by the histogram of the data: pass 1 finds the range that the bins divide,
// pass 2 counts. Source: AMD Quark, spec 4.6 to 4.9.
#pragma once
#include "observers/histogram.h"
#include "observers/registry.h"

namespace wasmquant {

class HistogramObserver final : public Observer {
 public:
  /// `method` is one of percentile, mse, mse_last_bins, least_squares_search, tqt_kl_j, entropy.
  HistogramObserver(const QuantizationSpec& spec, ObserverMethod method, const ObserverOptions& options) noexcept;

 private:
  void start_pass() override;
  void count(std::span<const float> x, uint64_t at) noexcept override;
  void merge_counts(const Observer& other) noexcept override;
  void choose(Observation& observation) const override;

  ObserverMethod method_;
  ObserverOptions options_;
  Histogram histogram_;
};

}  // namespace wasmquant
