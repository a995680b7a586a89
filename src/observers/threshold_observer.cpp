// Brevitas' statistics (aihwkit-brevitas 2.5, 2.7): each batch gives a threshold t and, for asymmetric specs, a lower
// end l <= 0; both are averaged over batches with equal weight, as m <- m k/(k+1) + new/(k+1) in float32, and then
// become the scale and zero point. t is at least RoundingGrid::smallest_threshold.
//   mean_max            t = max|x|, or max - l with l = min(min, 0)
//   mean_percentile     the same with k-th smallest values: of |x| k = floor(0.01 p n + 0.5); for l, ceil(0.01 (100 -
// p) n)
//   threshold_mse       the t with the least squared error of 20 down from the above, l fixed; then l of 20, t fixed
//   mean_threshold_mse  the same without power-of-two thresholds; t is searched with the l of the batch before
// A batch is kept until it is complete; with asymmetric mean_threshold_mse all batches are kept until finish.
#include <algorithm>
#include <cmath>

#include "observers/observer.h"
#include "observers/scale_groups.h"
#include "observers/search/threshold_search.h"
#include "observers/statistics/order_statistics.h"

namespace wasmquant {
namespace {

constexpr double kThresholdPercentile = 99.999;

// Index of the k-th smallest of n.
size_t rank_of(double k, size_t n) noexcept {
  return static_cast<size_t>(std::clamp(k, 1.0, static_cast<double>(n))) - 1;
}

Threshold percentile_of(std::span<const float> x, bool is_magnitude, double percent) {
  const auto n = static_cast<double>(x.size());
  std::vector<float> values(x.begin(), x.end());
  for (float& value : values) value = is_magnitude ? std::fabs(value) : value;
  const float high = value_of_rank(values, rank_of(std::floor(0.01 * percent * n + 0.5), x.size()));
  if (is_magnitude) return {high, 0};
  const float low = std::min(value_of_rank(values, rank_of(std::ceil(0.01 * (100 - percent) * n), x.size())), 0.0f);
  return {std::fabs(high - low), low};
}

bool is_of_magnitudes(const QuantizationSpec& spec) noexcept {
  return spec.symmetric || !info_of(spec.dtype).is_integer;
}

}  // namespace

class ThresholdObserver final : public Observer {
 public:
  ThresholdObserver(const QuantizationSpec& spec, ObserverMethod method, const ObserverOptions& options);

 private:
  /// [scales]: t, then [scales]: l.
  std::vector<float> summary_of(size_t index) const override;
  void choose(Observation& observation) const override;
  // `left`: the lower ends from the batch before, if any.
  std::vector<float> thresholds_of(size_t index, const std::vector<float>* left) const;

  ObserverMethod method_;
  ObserverOptions options_;
};

ThresholdObserver::ThresholdObserver(const QuantizationSpec& spec, ObserverMethod method,
                                     const ObserverOptions& options)
    : Observer(spec, 1, !spec.is_dynamic,
               method == ObserverMethod::mean_max                                        ? Data::none
               : method == ObserverMethod::mean_threshold_mse && !is_of_magnitudes(spec) ? Data::all_batches
                                                                                         : Data::until_complete),
      method_(method),
      options_(options) {
  if (options_.percentile == 0) options_.percentile = kThresholdPercentile;
}

std::vector<float> ThresholdObserver::thresholds_of(size_t index, const std::vector<float>* left) const {
  const RangeObserver& ranges = range(index);
  const size_t scales = ranges.min().size();
  const bool is_magnitude = is_of_magnitudes(spec());
  QuantizationSpec searched = spec();
  if (method_ == ObserverMethod::mean_threshold_mse) searched.grid.threshold_rounding = ThresholdRounding::none;
  std::vector<float> thresholds(2 * scales);
  const ScaleGroups groups(ranges.granularity(),
                           method_ == ObserverMethod::mean_max ? std::vector<float>() : data(index));
  for (size_t i = 0; i < scales; ++i) {
    const float min = ranges.min()[i], max = ranges.max()[i], low = std::min(min, 0.0f);
    if (min > max) continue;
    Threshold found{std::max(-min, max), 0};
    if (!is_magnitude) found = {std::fabs(max - low), low};
    if (method_ == ObserverMethod::mean_percentile)
      found = percentile_of(groups[i], is_magnitude, options_.percentile);
    else if (method_ != ObserverMethod::mean_max)
      found = search_threshold(groups[i], searched, found, left ? (*left)[scales + i] : found.low, options_.search);
    thresholds[i] = std::max(found.length, spec().grid.smallest_threshold);
    thresholds[scales + i] = found.low;
  }
  return thresholds;
}

std::vector<float> ThresholdObserver::summary_of(size_t index) const { return thresholds_of(index, nullptr); }

// Batches whose number of scales differs from the last one's do not count.
void ThresholdObserver::choose(Observation& observation) const {
  const size_t scales = observation.min.size();
  std::vector<float> mean(2 * scales), left;
  std::vector<uint32_t> seen(scales);
  for (size_t batch = 0; batch < batch_count(); ++batch) {
    if (range(batch).min().size() != scales) continue;
    const bool is_first = left.empty();
    left = summary(batch).empty() ? thresholds_of(batch, is_first ? nullptr : &left) : summary(batch);
    for (size_t i = 0; i < scales; ++i) {
      if (range(batch).min()[i] > range(batch).max()[i]) continue;
      const auto k = static_cast<double>(seen[i]++);
      const auto kept = static_cast<float>(k / (k + 1)), count = static_cast<float>(k + 1);
      for (const size_t at : {i, scales + i}) mean[at] = k == 0 ? left[at] : mean[at] * kept + left[at] / count;
    }
  }
  const ScaleRule rule(spec());
  observation.qparams.resize(scales);
  for (size_t i = 0; i < scales; ++i) {
    const float length = mean[i], low = mean[scales + i];
    observation.qparams[i] = seen[i] == 0 ? QParams{1, 0} : rule.of_threshold(length, low);
    if (seen[i] == 0) continue;
    observation.min[i] = is_of_magnitudes(spec()) ? -length : low;
    observation.max[i] = low + length;
  }
}

std::unique_ptr<Observer> make_threshold_observer(const QuantizationSpec& spec, const ObserverOptions& options) {
  return std::make_unique<ThresholdObserver>(spec, info_of(spec.observer).method, options);
}

}  // namespace wasmquant
