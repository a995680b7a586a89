#include "handles/observer.h"

#include <algorithm>

#include "core/message.h"
#include "kernels/kernels.h"
#include "tensors/tensor_input.h"

namespace wasmquant::bindings {
namespace {

Error mixed_numbers() {
  return Error{ErrorCode::argument_invalid, "batch",
               "is given for some batches and not for others; number all batches of these observers, or none"};
}

}  // namespace

Made<BoundObserver> BoundObserver::make(const std::string& spec_text, List<Diagnostic>& diagnostics) {
  TRY(spec, read_spec(spec_text, diagnostics));
  return std::unique_ptr<BoundObserver>(new BoundObserver(make_observer(spec)));
}

Status BoundObserver::update(Address values, const std::string& dtype, double count, double at,
                             const std::string& shape_text, double batch) {
  const Numbers kind = batch < 0 ? Numbers::counted : Numbers::given;
  TRY(shape, read_shape(shape_text));
  TRY(x, read_values(values, dtype, static_cast<uint64_t>(count)));
  TRY_VOID(check_part(x, static_cast<uint64_t>(at), shape, kind));
  TRY(number, kind == Numbers::counted ? next_number() : Result<uint64_t>(static_cast<uint64_t>(batch)));
  TRY_VOID(observer_->begin(number, shape));
  observer_->update(x, static_cast<uint64_t>(at));
  kind_ = kind;
  if (kind == Numbers::counted && observer_->pass() == 1) counted_.push_back(number);
  ++seen_;
  return {};
}

Status BoundObserver::next_pass() {
  seen_ = 0;
  return observer_->next_pass();
}

Result<Parts> BoundObserver::finish() {
  TRY(found, observer_->finish());
  TRY_VOID(check_finite(found.qparams));
  const Granularity& g = found.granularity;
  TensorWork& w = work();
  w.min.resize(found.min.size());
  w.max.resize(found.max.size());
  to_scale_shape_order(g, found.min.data(), w.min.data());
  to_scale_shape_order(g, found.max.data(), w.max.data());
  Parts out;
  add_qparams(out, g, observer_->spec(), found.qparams);
  out.add("min", region_of(std::span(w.min)));
  out.add("max", region_of(std::span(w.max)));
  return out;
}

Status BoundObserver::merge(const BoundObserver& other) {
  if (!goes_with(other.kind_)) return mixed_numbers();
  TRY_VOID(observer_->merge(*other.observer_));
  if (kind_ == Numbers::none) kind_ = other.kind_;
  if (observer_->pass() == 1)
    for (const uint64_t number : other.counted_)
      if (std::find(counted_.begin(), counted_.end(), number) == counted_.end()) counted_.push_back(number);
  return {};
}

void BoundObserver::reset() {
  seen_ = 0;
  counted_.clear();
  kind_ = Numbers::none;
  observer_->reset();
}

Status BoundObserver::check_part(std::span<const float> x, uint64_t at, const std::vector<uint64_t>& shape,
                                 Numbers kind) const {
  if (!goes_with(kind)) return mixed_numbers();
  const uint64_t whole = count_of(shape);
  if (kind == Numbers::counted ? x.size() != whole : at > whole || x.size() > whole - at)
    return error_at(ErrorCode::shape_mismatch, "data", "has {} elements from {} on, but the batch has {}", x.size(), at,
                    whole);
  const int64_t index = kernels::find_non_finite(x);
  if (index < 0) return {};
  return error_at(ErrorCode::value_not_finite, "", "element {} is NaN or infinite", at + static_cast<uint64_t>(index));
}

// One count for all observers: batches that are merged stay apart, in the order of arrival, and keep their numbers
// when they are merged in both directions.
Result<uint64_t> BoundObserver::next_number() const {
  static uint64_t count = 0;
  if (observer_->pass() == 1) return count++;
  if (seen_ < counted_.size()) return counted_[seen_];
  return error_at(ErrorCode::state_invalid, "", "batch {} was not part of the first pass", seen_);
}

}  // namespace wasmquant::bindings
