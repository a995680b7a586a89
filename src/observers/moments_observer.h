// Initial scales for training (AMD Quark, spec 4.10). Zero points are 0.
//   lsq      2 mean|x| / sqrt(quant_max), where quant_max of asymmetric specs is 2^bits - 1
//            (Esser et al., "Learned Step Size Quantization", 2020)
//   tqt_3sd  2^ceil(log2 t) / 2^(bits - 1), t = |mean(x + 1e-6)| + 3 standard deviations (Jain et al., "Trained
//            Quantization Thresholds", 2020); the logarithm is float32
// At least RoundingGrid::smallest_scale. Quark takes the first batch; here all batches count (per_channel: while the number
// of channels stays). Pass 1 finds the range, whose units pass 2 sums in.
#pragma once
#include "core/list.h"
#include "observers/observer.h"
#include "observers/statistics/moments.h"

namespace wasmquant {

/// 2^ceil(log2 threshold) / 2^(bits - 1), at least the smallest scale of the spec's grid.
float tqt_scale_of(double threshold, const QuantizationSpec& spec) noexcept;

/// Observer of the lsq and tqt_3sd methods.
class MomentsObserver final : public Observer {
 public:
  MomentsObserver(const QuantizationSpec& spec, ObserverMethod method) : Observer(spec, 2, false), method_(method) {}

 private:
  void start_pass() override;
  void start_batch(size_t index, const Granularity& granularity) override;
  void count(std::span<const float> x, uint64_t at) noexcept override;
  void merge_counts(const Observer& other) noexcept override;
  void choose(Observation& observation) const override;

  ObserverMethod method_;
  double unit_ = 1;  // a power of two: 1 / the largest magnitude of all, or less
  Granularity granularity_;
  List<Moments> moments_;  // of each scale
};

}  // namespace wasmquant
