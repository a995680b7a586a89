#include "observers/batch_observer.h"

#include <string>
#include <utility>

namespace wasmquant {

BatchPolicy batch_policy_of(const QuantizationSpec& spec, const Granularity& seen, const Granularity& next) noexcept {
  if (spec.is_dynamic || spec.qscheme == QScheme::per_group) return BatchPolicy::replace;
  return seen.scale_shape == next.scale_shape ? BatchPolicy::accumulate : BatchPolicy::replace;
}

Status BatchObserver::observe(std::span<const float> x, const std::vector<uint64_t>& shape) {
  TRY(granularity, granularity_of(shape, spec_));
  if (granularity.element_count() != x.size())
    return Error{ErrorCode::shape_mismatch, "",
                 "the shape has " + std::to_string(granularity.element_count()) + " elements, the data " +
                     std::to_string(x.size())};
  RangeObserver range(granularity, spec_);
  if (const int64_t index = range.update(x, 0); index >= 0)
    return Error{ErrorCode::value_not_finite, "", "element " + std::to_string(index) + " is NaN or infinite"};
  if (state_ && batch_policy_of(spec_, state_->granularity, granularity) == BatchPolicy::accumulate)
    range.merge(state_->range);
  state_ = State{std::move(granularity), std::move(range)};
  return {};
}

Status BatchObserver::merge(const BatchObserver& other) {
  if (!other.state_) return {};
  if (!state_) {
    state_ = other.state_;
    return {};
  }
  if (state_->granularity.scale_shape != other.state_->granularity.scale_shape)
    return Error{ErrorCode::shape_mismatch, "",
                 "observers of " + std::to_string(state_->range.min().size()) + " and " +
                     std::to_string(other.state_->range.min().size()) +
                     " scales cannot be merged; their scale shapes differ"};
  state_->range.merge(other.state_->range);
  return {};
}

std::vector<QParams> BatchObserver::finish() const {
  if (!state_) return {QParams{1.0f, 0.0f}};
  return state_->range.finish();
}

}  // namespace wasmquant
