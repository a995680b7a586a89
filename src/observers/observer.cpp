// The state that all observers share: batches, pieces that arrive in any order, and merging.
#include "observers/observer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/message.h"

namespace wasmquant {

bool Observer::replaces() const noexcept {
  if (spec_.scale_refit) return true;
  switch (info_of(spec_.observer).method) {
    case ObserverMethod::last_range:
    case ObserverMethod::mx_diffs:
    case ObserverMethod::per_scale_mse:
    case ObserverMethod::half_quadratic:
      return true;
    case ObserverMethod::block_max:
      return spec_.is_dynamic;
    default:
      return spec_.is_dynamic || spec_.qscheme == QScheme::per_group;
  }
}

Status Observer::weigh(std::span<const float> importance) {
  const ObserverMethod method = info_of(spec_.observer).method;
  const bool measures_errors =
      method == ObserverMethod::per_scale_mse || method == ObserverMethod::half_quadratic || spec_.scale_refit;
  if (!batches_.empty() || !measures_errors)
    return error_at(ErrorCode::state_invalid, "", "{} does not accept the importance of input channels{}",
                    info_of(spec_.observer).name, batches_.empty() ? "" : " after its first data");
  for (size_t i = 0; i < importance.size(); ++i)
    if (!(importance[i] >= 0 && importance[i] <= std::numeric_limits<float>::max()))
      return error_at(ErrorCode::argument_invalid, "", "importance of input channel {} is negative, NaN or infinite",
                      i);
  importance_.assign(importance.begin(), importance.end());
  return {};
}

float Observer::second_scale(const Observation& observation) const noexcept {
  if (joined_.empty()) return second_scale_or_one(range_of(observation.min, observation.max), spec_);
  ValueRange all = joined_;
  const RangeObserver& own = range(batch_count() - 1);
  all.add(range_of(own.min(), own.max()));
  return second_scale_or_one(all, spec_);
}

bool Observer::is_complete(const Batch& batch) noexcept {
  uint64_t seen = batch.settled;
  for (const Piece& piece : batch.pieces) seen += piece.values.size();
  return seen >= batch.range.granularity().element_count();
}

Status Observer::take_in(uint64_t number, RangeObserver&& range, bool is_merge) {
  size_t at = 0;
  while (at < batches_.size() && batches_[at]->number < number) ++at;
  const bool is_known = at < batches_.size() && batches_[at]->number == number;
  current_ = at;
  if (batches_.empty() || (keeps_batches_ && !is_known)) {
    batches_.insert(batches_.begin() + static_cast<ptrdiff_t>(at),
                    std::make_unique<Batch>(Batch{number, std::move(range)}));
    return {};
  }
  if (!keeps_batches_) current_ = 0;
  Batch& seen = *batches_[current_];
  const bool same_scales = seen.range.granularity().scale_shape == range.granularity().scale_shape;
  const bool starts_anew = !is_known && (replaces() || (!same_scales && !is_merge));
  if (starts_anew && number < seen.number) {
    current_ = kNone;
    return {};
  }
  if (!starts_anew) {
    if (!same_scales) {
      current_ = kNone;
      return error_at(ErrorCode::shape_mismatch, "", "{} and {} scales cannot be combined: their shapes differ",
                      seen.range.min().size(), range.min().size());
    }
    range.merge(seen.range);  // the new observer has the granularity of the coming pieces
  } else {
    seen.pieces.clear();
    seen.summary.clear();
    seen.settled = 0;
  }
  seen.number = std::max(number, seen.number);
  seen.range = std::move(range);
  return {};
}

void Observer::drop_data() {
  if (data_ == Data::until_complete && current_ != kNone) {
    Batch& batch = *batches_[current_];
    if (batch.summary.empty() && is_complete(batch)) batch.summary = summary_of(current_);
  }
  for (size_t i = 0; i < batches_.size(); ++i)
    if (!keeps_data_of(i)) batches_[i]->pieces.clear();
}

void Observer::keep(size_t index, std::span<const float> x, uint64_t at) {
  const auto settling = settling_elements(batches_[index]->range.granularity());
  if (!settling) {
    batches_[index]->pieces.push_back(Piece{at, {x.begin(), x.end()}});
    return;
  }
  const uint64_t unit = *settling;
  while (!x.empty()) {
    const uint64_t offset = at % unit;
    const bool is_whole = offset == 0 && x.size() >= unit;
    const auto count =
        static_cast<size_t>(is_whole ? x.size() / unit * unit : std::min<uint64_t>(x.size(), unit - offset));
    if (is_whole) {
      settle(index, x.first(count), unit, at, batches_[index]->summary);
      batches_[index]->settled += count;
    } else {
      keep_part(index, x.first(count), at, unit);
    }
    x = x.subspan(count);
    at += count;
  }
}

void Observer::keep_part(size_t index, std::span<const float> x, uint64_t at, uint64_t unit) {
  Batch& batch = *batches_[index];
  batch.pieces.push_back(Piece{at, {x.begin(), x.end()}});
  const uint64_t scale = at / unit;
  uint64_t seen = 0;
  for (const Piece& piece : batch.pieces) seen += piece.at / unit == scale ? piece.values.size() : 0;
  if (seen < unit) return;
  std::vector<float> whole(static_cast<size_t>(unit));
  for (size_t i = batch.pieces.size(); i-- > 0;) {
    Piece& piece = batch.pieces[i];
    if (piece.at / unit != scale) continue;
    std::copy(piece.values.begin(), piece.values.end(), whole.begin() + static_cast<ptrdiff_t>(piece.at % unit));
    std::swap(piece, batch.pieces.back());
    batch.pieces.pop_back();
  }
  settle(index, whole, unit, scale * unit, batch.summary);
  batch.settled += unit;
}

std::vector<float> Observer::data(size_t index) const {
  const Batch& batch = *batches_[index];
  std::vector<float> values(static_cast<size_t>(batch.range.granularity().element_count()));
  for (const Piece& piece : batch.pieces)
    std::copy(piece.values.begin(), piece.values.end(), values.begin() + static_cast<ptrdiff_t>(piece.at));
  return values;
}

Status Observer::check_data() const {
  for (size_t i = 0; i < batches_.size() && data_ != Data::none; ++i)
    if (keeps_data_of(i) && !is_complete(*batches_[i]))
      return error_at(ErrorCode::state_invalid, "", "batch {} is not complete: only some of its {} elements were seen",
                      batches_[i]->number, batches_[i]->range.granularity().element_count());
  return {};
}

// Pass 2 skips batches whose range was replaced.
Status Observer::find(uint64_t number) {
  current_ = kNone;
  for (size_t i = 0; i < batches_.size(); ++i)
    if (batches_[i]->number == number || (!keeps_batches_ && !replaces() && number < batches_[i]->number)) current_ = i;
  if (current_ != kNone || (!batches_.empty() && number < batches_.back()->number && !keeps_batches_)) return {};
  return error_at(ErrorCode::state_invalid, "", "batch {} was not part of the first pass", number);
}

Status Observer::begin(uint64_t batch, const std::vector<uint64_t>& shape) {
  TRY(granularity, granularity_of(shape, spec_));
  if (const size_t channels = importance_.size(); channels != 0 && (shape.size() < 2 || shape[1] != channels))
    return error_at(ErrorCode::shape_mismatch, "", "the importance has {} input channels, but the data has {}",
                    channels, shape.size() < 2 ? 0 : shape[1]);
  if (pass_ == 1) {
    TRY_VOID(take_in(batch, RangeObserver(granularity, spec_), false));
    if (data_ != Data::none && current_ != kNone) batches_[current_]->shape = shape;
    drop_data();
    return {};
  }
  TRY_VOID(find(batch));
  if (current_ == kNone) return {};
  const size_t scales = range(current_).min().size();
  if (granularity.scale_count() != scales) {
    current_ = kNone;
    return error_at(ErrorCode::shape_mismatch, "", "batch {} has {} scales, in the first pass it had {}", batch,
                    granularity.scale_count(), scales);
  }
  start_batch(current_, granularity);
  return {};
}

int64_t Observer::update(std::span<const float> x, uint64_t at) noexcept {
  if (pass_ == 1 && current_ != kNone) {
    const int64_t found = batches_[current_]->range.update(x, at);
    if (data_ != Data::none && keeps_data_of(current_)) {
      keep(current_, x, at);
      drop_data();
    }
    return found;
  }
  if (pass_ == 2) {
    if (current_ != kNone) {
      count(x, at);
      has_counted_ |= !x.empty();
    }
    return -1;
  }
  const int64_t index = kernels::find_non_finite(x);
  return index < 0 ? index : static_cast<int64_t>(at) + index;
}

Status Observer::merge(const Observer& other) {
  if (!(spec_ == other.spec_) || pass_ != other.pass_ || importance_ != other.importance_)
    return Error{ErrorCode::state_invalid, "", "observers of different specs or in different passes cannot be merged"};
  if (pass_ == 2) {
    merge_counts(other);
    has_counted_ |= other.has_counted_;
    return {};
  }
  for (const std::unique_ptr<Batch>& batch : other.batches_) {
    TRY_VOID(take_in(batch->number, RangeObserver(batch->range), true));
    if (data_ == Data::none || current_ == kNone) continue;
    Batch& own = *batches_[current_];
    own.shape = batch->shape;
    if (own.summary.empty()) own.summary = batch->summary;
    for (size_t i = 0; i < batch->summary.size(); ++i)
      if (std::isnan(own.summary[i])) own.summary[i] = batch->summary[i];
    own.settled += batch->settled;
    for (const Piece& piece : batch->pieces)
      if (keeps_data_of(current_)) keep(current_, piece.values, piece.at);
    drop_data();
  }
  current_ = kNone;
  return {};
}

Status Observer::next_pass() {
  if (pass_ == passes_) return Error{ErrorCode::state_invalid, "", "the observer has already seen all of its data"};
  ++pass_;
  current_ = kNone;
  has_counted_ = false;
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
    observation.spec = spec_;
    return observation;
  }
  TRY_VOID(check_data());
  const RangeObserver& last = batches_.back()->range;
  const bool lacks_counts = passes_ == 2 && !has_counted_ && last.granularity().element_count() != 0;
  if (pass_ != passes_ || lacks_counts)
    return Error{ErrorCode::state_invalid, "",
                 "this observer reads the data twice: first for its range, then for its distribution"};
  observation.granularity = last.granularity();
  observation.min.assign(last.min().begin(), last.min().end());
  observation.max.assign(last.max().begin(), last.max().end());
  observation.spec = spec_;
  observation.second_scale = second_scale(observation);
  choose(observation);
  observation.spec = spec_for_data(spec_, observation.min);
  return observation;
}

Status observe(Observer& observer, uint64_t batch, std::span<const float> x, const std::vector<uint64_t>& shape) {
  TRY(granularity, granularity_of(shape, observer.spec()));
  if (granularity.element_count() != x.size())
    return error_at(ErrorCode::shape_mismatch, "", "the shape has {} elements, the data {}",
                    granularity.element_count(), x.size());
  if (const int64_t index = kernels::find_non_finite(x); index >= 0)
    return error_at(ErrorCode::value_not_finite, "", "element {} is NaN or infinite", index);
  TRY_VOID(observer.begin(batch, shape));
  observer.update(x, 0);
  return {};
}

}  // namespace wasmquant
