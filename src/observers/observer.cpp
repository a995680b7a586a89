#include "observers/observer.h"

#include <algorithm>

#include "core/message.h"

namespace wasmquant {

Status Observer::take_in(Batch&& next, bool is_merge) {
  const auto found = std::lower_bound(batches_.begin(), batches_.end(), next.number,
                                      [](const Batch& batch, uint64_t number) { return batch.number < number; });
  current_ = static_cast<size_t>(found - batches_.begin());
  const bool is_known = found != batches_.end() && found->number == next.number;
  if (batches_.empty() || (keeps_batches_ && !is_known)) {
    batches_.insert(found, std::move(next));
    return {};
  }
  if (!keeps_batches_) current_ = 0;
  Batch& seen = batches_[current_];
  const bool same_scales = seen.granularity.scale_shape == next.granularity.scale_shape;
  if (!is_known && (replaces() || (!same_scales && !is_merge))) {
    if (next.number > seen.number)
      seen = std::move(next);
    else
      current_ = kNone;
    return {};
  }
  if (!same_scales) {
    current_ = kNone;
    return error_at(ErrorCode::shape_mismatch, "",
                    {seen.range.min().size(), " and ", next.range.min().size(),
                     " scales do not go together: the shapes of their scales differ"});
  }
  // The ranges move to the newcomer, whose granularity the coming pieces have.
  next.range.merge(seen.range);
  next.number = std::max(next.number, seen.number);
  seen = std::move(next);
  return {};
}

// Pass 2: batches whose range was replaced are passed over.
Status Observer::find(uint64_t number) {
  current_ = kNone;
  for (size_t i = 0; i < batches_.size(); ++i)
    if (batches_[i].number == number || (!keeps_batches_ && !replaces() && number < batches_[i].number)) current_ = i;
  if (current_ != kNone || (!batches_.empty() && number < batches_.back().number && !keeps_batches_)) return {};
  return error_at(ErrorCode::state_invalid, "", {"batch ", number, " was not part of the first pass"});
}

Status Observer::begin(uint64_t batch, const std::vector<uint64_t>& shape) {
  TRY(granularity, granularity_of(shape, spec_));
  if (pass_ == 1) {
    RangeObserver range(granularity, spec_);
    return take_in(Batch{batch, std::move(granularity), std::move(range)}, false);
  }
  TRY_VOID(find(batch));
  if (current_ != kNone) start_batch(current_, granularity);
  return {};
}

int64_t Observer::update(std::span<const float> x, uint64_t at) noexcept {
  if (pass_ == 1 && current_ != kNone) return batches_[current_].range.update(x, at);
  if (pass_ == 2) {
    if (current_ != kNone) count(x, at);
    return -1;
  }
  const int64_t index = kernels::find_non_finite(x);
  return index < 0 ? index : static_cast<int64_t>(at) + index;
}

Status Observer::merge(const Observer& other) {
  if (!(spec_ == other.spec_) || pass_ != other.pass_)
    return Error{ErrorCode::state_invalid, "", "observers of different specs or in different passes cannot be merged"};
  if (pass_ == 2) {
    merge_counts(other);
    return {};
  }
  for (const Batch& batch : other.batches_) TRY_VOID(take_in(Batch(batch), true));
  return {};
}

Status Observer::next_pass() {
  if (pass_ == passes_) return Error{ErrorCode::state_invalid, "", "the observer has seen all that it needs"};
  ++pass_;
  current_ = kNone;
  start_pass();
  return {};
}

void Observer::reset() noexcept {
  batches_.clear();
  current_ = kNone;
  pass_ = 1;
}

Result<Observation> Observer::finish() const {
  Observation observation;
  if (batches_.empty()) {
    observation.qparams = {QParams{1.0f, 0.0f}};
    observation.min = {0.0f};
    observation.max = {0.0f};
    return observation;
  }
  if (pass_ != passes_)
    return Error{ErrorCode::state_invalid, "",
                 "this observer has to see the data twice: first its range, then how it is spread"};
  const Batch& last = batches_.back();
  observation.granularity = last.granularity;
  observation.min.assign(last.range.min().begin(), last.range.min().end());
  observation.max.assign(last.range.max().begin(), last.range.max().end());
  choose(observation);
  return observation;
}

Status observe(Observer& observer, uint64_t batch, std::span<const float> x, const std::vector<uint64_t>& shape) {
  TRY(granularity, granularity_of(shape, observer.spec()));
  if (granularity.element_count() != x.size())
    return error_at(ErrorCode::shape_mismatch, "",
                    {"the shape has ", granularity.element_count(), " elements, the data ", x.size()});
  if (const int64_t index = kernels::find_non_finite(x); index >= 0)
    return error_at(ErrorCode::value_not_finite, "", {"element ", index, " is NaN or infinite"});
  TRY_VOID(observer.begin(batch, shape));
  observer.update(x, 0);
  return {};
}

}  // namespace wasmquant
