// aihwkit's estimators without a search (aihwkit-brevitas 1.5).
//   last_range    the range of the last batch; with tail_percent p, per_tensor (percentile p, maximum), otherwise
//                 (percentile p, percentile 100 - p)
//   moving_range  first batch: its own; then (1 - momentum) * new + momentum * old, in float32
#include "observers/observer.h"
#include "observers/scale_groups.h"
#include "observers/statistics/order_statistics.h"

namespace wasmquant {

class BatchRangeObserver final : public Observer {
 public:
  BatchRangeObserver(const QuantizationSpec& spec, bool is_moving, const ObserverOptions& options)
      : Observer(spec, 1, is_moving && !spec.is_dynamic,
                 !is_moving && options.tail_percent != 0 ? Data::last_batch : Data::none),
        is_moving_(is_moving),
        options_(options) {}

 private:
  void choose(Observation& observation) const override;
  void move(Observation& observation) const noexcept;
  void cut_tails(Observation& observation) const;

  bool is_moving_;
  ObserverOptions options_;
};

// A batch with a different number of scales starts over.
void BatchRangeObserver::move(Observation& observation) const noexcept {
  const size_t scales = observation.min.size();
  const auto old_part = static_cast<float>(options_.momentum), new_part = static_cast<float>(1 - options_.momentum);
  size_t first = batch_count() - 1;
  while (first > 0 && range(first - 1).min().size() == scales) --first;
  for (size_t scale = 0; scale < scales; ++scale) {
    float low = 1, high = 0;  // nothing seen
    for (size_t i = first; i < batch_count(); ++i) {
      const float min = range(i).min()[scale], max = range(i).max()[scale];
      if (min > max) continue;
      const bool is_first = low > high;
      low = is_first ? min : new_part * min + old_part * low;
      high = is_first ? max : new_part * max + old_part * high;
    }
    observation.min[scale] = low;
    observation.max[scale] = high;
  }
}

void BatchRangeObserver::cut_tails(Observation& observation) const {
  const ScaleGroups groups(observation.granularity, data(batch_count() - 1));
  for (size_t scale = 0; scale < groups.count(); ++scale) {
    std::vector<float> values(groups[scale].begin(), groups[scale].end());
    if (values.empty()) continue;
    observation.min[scale] = static_cast<float>(interpolated_percentile(values, options_.tail_percent));
    if (spec().qscheme == QScheme::per_tensor) continue;
    observation.max[scale] = static_cast<float>(interpolated_percentile(values, 100 - options_.tail_percent));
  }
}

void BatchRangeObserver::choose(Observation& observation) const {
  if (is_moving_)
    move(observation);
  else if (options_.tail_percent != 0)
    cut_tails(observation);
  observation.qparams.resize(observation.min.size());
  observation.second_scale = second_scale(observation);
  qparams_of_ranges(observation.min, observation.max, spec(), observation.second_scale, observation.qparams);
}

std::unique_ptr<Observer> make_batch_range_observer(const QuantizationSpec& spec, const ObserverOptions& options) {
  return std::make_unique<BatchRangeObserver>(spec, info_of(spec.observer).method == ObserverMethod::moving_range,
                                              options);
}

}  // namespace wasmquant
