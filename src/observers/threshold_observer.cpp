#include "observers/threshold_observer.h"

#include <algorithm>
#include <cmath>

#include "observers/order_statistics.h"
#include "observers/scale_slices.h"
#include "observers/threshold_search.h"

namespace wasmquant {
namespace {

constexpr double kPercentile = 99.999;

// Position of the k-th smallest of n as an index.
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

}  // namespace

ThresholdObserver::ThresholdObserver(const QuantizationSpec& spec, ObserverMethod method,
                                     const ObserverOptions& options)
    : Observer(spec, 1, !spec.is_dynamic, method == ObserverMethod::mean_max ? Data::none : Data::all_batches),
      method_(method),
      options_(options) {
  if (options_.percentile == 0) options_.percentile = kPercentile;
}

void ThresholdObserver::choose(Observation& observation) const {
  const bool is_magnitude = spec().symmetric || !info_of(spec().dtype).is_integer;
  const bool rounds_average = method_ == ObserverMethod::mean_threshold_mse;
  const size_t scales = observation.min.size();
  QuantizationSpec searched = spec();
  if (rounds_average) searched.grid.threshold_rounding = ThresholdRounding::none;
  std::vector<Threshold> mean(scales), left(scales);
  std::vector<uint32_t> seen(scales);
  for (size_t batch = 0; batch < batch_count(); ++batch) {
    const RangeObserver& ranges = range(batch);
    if (ranges.min().size() != scales) continue;
    const ScaleSlices slices(ranges.granularity(),
                             method_ == ObserverMethod::mean_max ? std::vector<float>() : data(batch));
    for (size_t i = 0; i < scales; ++i) {
      const float min = ranges.min()[i], max = ranges.max()[i];
      if (min > max) continue;
      Threshold found{std::max(-min, max), 0};
      if (!is_magnitude) found = {std::fabs(max - std::min(min, 0.0f)), std::min(min, 0.0f)};
      if (method_ == ObserverMethod::mean_percentile)
        found = percentile_of(slices[i], is_magnitude, options_.percentile);
      if (method_ == ObserverMethod::threshold_mse || rounds_average) {
        const float start = rounds_average && seen[i] != 0 ? left[i].low : found.low;
        found = left[i] = search_threshold(slices[i], searched, found, start, options_.search);
      }
      found.length = std::max(found.length, spec().grid.smallest_threshold);
      const auto k = static_cast<double>(seen[i]++);
      const auto kept = static_cast<float>(k / (k + 1)), count = static_cast<float>(k + 1);
      mean[i] = k == 0
                    ? found
                    : Threshold{mean[i].length * kept + found.length / count, mean[i].low * kept + found.low / count};
    }
  }
  const ScaleRule rule(spec());
  observation.qparams.resize(scales);
  for (size_t i = 0; i < scales; ++i) {
    const Threshold t = mean[i];
    observation.qparams[i] = seen[i] == 0 ? QParams{1, 0} : rule.of_threshold(t.length, t.low);
    if (seen[i] == 0) continue;
    observation.min[i] = is_magnitude ? -t.length : t.low;
    observation.max[i] = t.low + t.length;
  }
}

}  // namespace wasmquant
