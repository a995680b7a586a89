#include "observers/moments_observer.h"

#include <algorithm>
#include <cmath>

#include "numeric/exponential.h"

namespace wasmquant {

float tqt_scale_of(double threshold, const QuantizationSpec& spec) noexcept {
  const auto log2 = threshold > 0 ? static_cast<float>(log2_of(threshold)) : 0;
  const double exponent = std::ceil(static_cast<double>(log2)) + 1 - static_cast<double>(code_bits_of(spec));
  return ScaleRule(spec).stored(threshold > 0 ? static_cast<float>(exp2_of(std::min(exponent, 127.0))) : 0);
}

void MomentsObserver::start_pass() {
  float largest = 0;
  moments_.clear();
  if (batch_count() != 0) {
    const std::span<const float> min = range(0).min(), max = range(0).max();
    for (size_t i = 0; i < min.size(); ++i)
      if (min[i] <= max[i]) largest = std::max(largest, std::max(-min[i], max[i]));
    moments_.resize(min.size());
  }
  unit_ = largest > 0 ? exp2_of(-std::ceil(log2_of(static_cast<double>(largest)))) : 1;
}

void MomentsObserver::start_batch(size_t, const Granularity& granularity) { granularity_ = granularity; }

void MomentsObserver::count(std::span<const float> x, uint64_t at) noexcept {
  for_each_run(granularity_, at, at + x.size(), [&](const Run& run) {
    const std::span<const float> values =
        x.subspan(static_cast<size_t>(run.begin - at), static_cast<size_t>(run.count));
    Moments* const first = &moments_[static_cast<size_t>(run.scale)];
    if (run.scale_stride == 0) return first->add(values, unit_);
    for (size_t i = 0; i < values.size(); ++i) first[i].add(values.subspan(i, 1), unit_);
  });
}

void MomentsObserver::merge_counts(const Observer& other) noexcept {
  const List<Moments>& added = static_cast<const MomentsObserver&>(other).moments_;  // same spec, so the same class
  for (size_t i = 0; i < moments_.size() && i < added.size(); ++i) moments_[i].add(added[i]);
}

void MomentsObserver::choose(Observation& observation) const {
  const auto codes = static_cast<double>(uint64_t{1} << info_of(spec().dtype).bits);
  const double largest_code = spec().symmetric ? static_cast<double>(quant_max_of(spec())) : codes - 1;
  const ScaleRule rule(spec());
  observation.qparams.assign(observation.min.size(), QParams{1.0f, 0.0f});
  for (size_t i = 0; i < moments_.size(); ++i) {
    const Moments& m = moments_[i];
    if (m.count == 0) continue;
    float& scale = observation.qparams[i].scale;
    if (method_ == ObserverMethod::lsq)
      scale = rule.stored(static_cast<float>(2 * (m.mean_magnitude() / unit_) / std::sqrt(largest_code)));
    else
      scale = tqt_scale_of(std::fabs(m.mean() / unit_ + 1e-6) + 3 * (m.standard_deviation() / unit_), spec());
    observation.min[i] = static_cast<float>(quant_min_of(spec())) * scale;
    observation.max[i] = static_cast<float>(quant_max_of(spec())) * scale;
  }
}

std::unique_ptr<Observer> make_moments_observer(const QuantizationSpec& spec, const ObserverOptions&) {
  return std::make_unique<MomentsObserver>(spec, info_of(spec.observer).method);
}

}  // namespace wasmquant
