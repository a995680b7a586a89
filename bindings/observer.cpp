// An observer owned by JavaScript. Contract: Observer of web/lib/engine/module.ts.
#include <emscripten/bind.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/list.h"
#include "core/message.h"
#include "kernels/kernels.h"
#include "marshal.h"
#include "observers/registry.h"
#include "tensor_input.h"

namespace wasmquant::bindings {
namespace {

/// With an invalid spec, every call returns the error.
class BoundObserver : Counted {
 public:
  explicit BoundObserver(std::string spec_text) {
    auto spec = read_spec(spec_text, diagnostics_);
    if (spec) {
      observer_ = make_observer(*spec);
    } else {
      error_ = spec.error();
    }
  }

  /// Elements [at, at + count) of a batch of this shape. `batch`: its number; below 0 for a whole batch, which is
  /// numbered in the order of arrival, and in the second pass by its place in the first.
  std::string update(Address values, std::string dtype, Address count, Address at, std::string shape_text,
                     double batch) {
    if (!observer_) return fail(error_, diagnostics_);
    const Numbers kind = batch < 0 ? Numbers::counted : Numbers::given;
    auto shape = read_shape(shape_text);
    if (!shape) return fail(shape.error());
    auto x = read_values(values, dtype, count);
    if (!x) return fail(x.error());
    if (const Status usable = check_part(*x, at, *shape, kind); !usable) return fail(usable.error());
    auto number = kind == Numbers::counted ? next_number() : Result<uint64_t>(static_cast<uint64_t>(batch));
    if (!number) return fail(number.error());
    if (const Status begun = observer_->begin(*number, *shape); !begun) return fail(begun.error());
    observer_->update(*x, at);
    kind_ = kind;
    if (kind == Numbers::counted && observer_->pass() == 1) counted_.push_back(*number);
    ++seen_;
    return ok(nullptr);
  }

  /// Required passes over the data; 1 if the spec is invalid.
  uint32_t passes() const noexcept { return observer_ ? observer_->passes() : 1; }
  std::string next_pass() {
    if (!observer_) return fail(error_, diagnostics_);
    seen_ = 0;
    return reply(observer_->next_pass());
  }

  std::string finish() {
    if (!observer_) return fail(error_, diagnostics_);
    auto found = observer_->finish();
    if (!found) return fail(found.error());
    if (const Status finite = check_finite(found->qparams); !finite) return fail(finite.error());
    const Granularity& g = found->granularity;
    TensorWork& w = work();
    w.min.resize(found->min.size());
    w.max.resize(found->max.size());
    to_scale_shape_order(g, found->min.data(), w.min.data());
    to_scale_shape_order(g, found->max.data(), w.max.data());
    json::Value out;
    out.set("count", static_cast<uint64_t>(found->qparams.size()));
    set_qparams(out, g, observer_->spec(), found->qparams);
    out.set("min", address(w.min.data()));
    out.set("max", address(w.max.data()));
    return ok(std::move(out));
  }

  std::string merge(BoundObserver& other) {
    if (!observer_) return fail(error_, diagnostics_);
    if (!other.observer_) return fail(other.error_, other.diagnostics_);
    if (!goes_with(other.kind_)) return fail(mixed_numbers());
    const Status merged = observer_->merge(*other.observer_);
    if (!merged) return fail(merged.error());
    if (kind_ == Numbers::none) kind_ = other.kind_;
    if (observer_->pass() == 1)
      for (const uint64_t number : other.counted_)
        if (std::find(counted_.begin(), counted_.end(), number) == counted_.end()) counted_.push_back(number);
    return ok(nullptr);
  }

  void reset() {
    seen_ = 0;
    counted_.clear();
    kind_ = Numbers::none;
    if (observer_) observer_->reset();
  }

 private:
  enum class Numbers { none, counted, given };

  bool goes_with(Numbers kind) const noexcept {
    return kind_ == Numbers::none || kind == Numbers::none || kind == kind_;
  }
  static Error mixed_numbers() {
    return Error{ErrorCode::argument_invalid, "batch",
                 "is given for some batches and not for others; number all batches of these observers, or none"};
  }

  Status check_part(std::span<const float> x, uint64_t at, const std::vector<uint64_t>& shape, Numbers kind) const {
    if (!goes_with(kind)) return mixed_numbers();
    const uint64_t whole = count_of(shape);
    if (kind == Numbers::counted ? x.size() != whole : at > whole || x.size() > whole - at)
      return error_at(ErrorCode::shape_mismatch, "data", "has {} elements from {} on, but the batch has {}", x.size(),
                      at, whole);
    const int64_t index = kernels::find_non_finite(x);
    if (index < 0) return {};
    return error_at(ErrorCode::value_not_finite, "", "element {} is NaN or infinite",
                    at + static_cast<uint64_t>(index));
  }

  // One count for all observers: batches that are merged stay apart, in the order of arrival, and keep their numbers
  // when they are merged in both directions.
  Result<uint64_t> next_number() const {
    static uint64_t count = 0;
    if (observer_->pass() == 1) return count++;
    if (seen_ < counted_.size()) return counted_[seen_];
    return error_at(ErrorCode::state_invalid, "", "batch {} was not part of the first pass", seen_);
  }

  std::unique_ptr<Observer> observer_;
  Numbers kind_ = Numbers::none;
  std::vector<uint64_t> counted_;  // of the first pass: its own, then those merged
  size_t seen_ = 0;                // updates of this pass
  Error error_;
  List<Diagnostic> diagnostics_;
};

}  // namespace
}  // namespace wasmquant::bindings

EMSCRIPTEN_BINDINGS(observer) {
  using namespace emscripten;
  using namespace wasmquant::bindings;
  class_<BoundObserver>("Observer")
      .constructor<std::string>()
      .function("update", &BoundObserver::update)
      .function("passes", &BoundObserver::passes)
      .function("nextPass", &BoundObserver::next_pass)
      .function("finish", &BoundObserver::finish)
      .function("merge", &BoundObserver::merge)
      .function("reset", &BoundObserver::reset);
}
