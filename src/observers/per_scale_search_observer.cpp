// Observers that search the scale of each channel or group separately (per_scale_search.h). Made for weights: the last
// batch counts. If the elements of a scale are contiguous, it is settled as soon as they have arrived, and only parts
// of scales are kept. Otherwise, and where the scales of a tensor depend on each other (scale_format e4m3, signs by the
// data), the tensor is kept until finish.
#include <cmath>
#include <limits>

#include "observers/observer.h"
#include "observers/scale_groups.h"
#include "observers/search/per_scale_search.h"

namespace wasmquant {
namespace {

// The summary per scale: scale, zero point, and range.
constexpr size_t kNumbers = 4;

}  // namespace

class PerScaleSearchObserver final : public Observer {
 public:
  PerScaleSearchObserver(const QuantizationSpec& spec, ObserverMethod method, const ObserverOptions& options)
      : Observer(spec, 1, false, Data::last_batch),
        method_(method),
        options_(options),
        search_(spec, method, options) {}

  std::optional<uint64_t> settling_elements(const Granularity& granularity) const noexcept override;

 private:
  void settle(size_t index, std::span<const float> x, uint64_t unit, uint64_t at, std::vector<float>& summary) override;
  void choose(Observation& observation) const override;
  // Weights of the first `count` elements of a tensor: importance() broadcast to its shape. Empty without importance.
  std::vector<float> weights(size_t index, uint64_t count) const;

  ObserverMethod method_;
  ObserverOptions options_;
  PerScaleSearch search_;
  std::vector<float> row_;  // weights of one index of dimension 0
};

std::optional<uint64_t> PerScaleSearchObserver::settling_elements(const Granularity& granularity) const noexcept {
  if (spec().scale_format == ScaleFormat::e4m3 || spec().grid.sign_by_data) return std::nullopt;
  return granularity.run_length();
}

std::vector<float> PerScaleSearchObserver::weights(size_t index, uint64_t count) const {
  std::vector<float> weights;
  if (importance().empty()) return weights;
  uint64_t inner = 1;
  for (size_t i = 2; i < shape(index).size(); ++i) inner *= shape(index)[i];
  weights.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i)
    weights.push_back(importance()[static_cast<size_t>(i / inner % importance().size())]);
  return weights;
}

void PerScaleSearchObserver::settle(size_t index, std::span<const float> x, uint64_t unit, uint64_t at,
                                    std::vector<float>& summary) {
  const Granularity& g = range(index).granularity();
  if (summary.empty())
    summary.assign(static_cast<size_t>(g.scale_count()) * kNumbers, std::numeric_limits<float>::quiet_NaN());
  const uint64_t row = importance().empty() ? 1 : g.element_count() / shape(index)[0];
  if (!importance().empty() && row_.size() != row) row_ = weights(index, row);
  for (size_t i = 0; i < x.size(); i += unit) {
    const SearchCandidate found =
        search_(x.subspan(i, static_cast<size_t>(unit)), row_.empty() ? nullptr : row_.data() + (at + i) % row);
    float* const numbers = summary.data() + (at + i) / unit * kNumbers;
    numbers[0] = found.qparams.scale;
    numbers[1] = found.qparams.zero_point;
    numbers[2] = found.min;
    numbers[3] = found.max;
  }
}

void PerScaleSearchObserver::choose(Observation& observation) const {
  const size_t last = batch_count() - 1, scales = observation.min.size();
  const Granularity& g = observation.granularity;
  observation.qparams.assign(scales, QParams{1.0f, 0.0f});
  const auto set = [&observation](size_t scale, const QParams& qparams, float min, float max) {
    observation.qparams[scale] = qparams;
    observation.min[scale] = min;
    observation.max[scale] = max;
  };
  if (settling_elements(g)) {
    const std::vector<float>& numbers = summary(last);
    for (size_t i = 0; i < numbers.size() / kNumbers; ++i) {
      const float* const n = numbers.data() + i * kNumbers;
      set(i, {n[0], n[1]}, n[2], n[3]);
    }
    return;
  }
  observation.second_scale = second_scale(observation);
  PerScaleSearch search(spec_for_data(spec(), observation.min), method_, options_, observation.second_scale);
  std::vector<float> values = data(last), weights_of_values = weights(last, values.size());
  for (size_t i = 0; i < weights_of_values.size(); ++i)  // removed together with its element
    if (!std::isfinite(values[i])) weights_of_values[i] = values[i];
  const ScaleGroups groups(g, std::move(values));
  const bool is_weighted = !weights_of_values.empty();
  const ScaleGroups groups_of_weights(is_weighted ? g : Granularity(), std::move(weights_of_values));
  for (size_t i = 0; i < scales; ++i) {
    const SearchCandidate found = search(groups[i], is_weighted ? groups_of_weights[i].data() : nullptr);
    set(i, found.qparams, found.min, found.max);
  }
}

std::unique_ptr<Observer> make_per_scale_search_observer(const QuantizationSpec& spec, const ObserverOptions& options) {
  return std::make_unique<PerScaleSearchObserver>(spec, info_of(spec.observer).method, options);
}

}  // namespace wasmquant
