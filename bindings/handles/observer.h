// An observer owned by JavaScript. Contract: BoundObserver of web/lib/engine/module.ts.
#pragma once
#include <vector>

#include "border/marshal.h"
#include "core/diagnostic.h"
#include "observers/registry.h"

namespace wasmquant::bindings {

class BoundObserver : Counted {
 public:
  /// Errors: those of read_spec.
  static Made<BoundObserver> make(const std::string& spec, List<Diagnostic>& diagnostics);

  /// Elements [at, at + count) of a batch of this shape. `batch`: its number; below 0 for a whole batch, which is
  /// numbered in the order of arrival, and in the second pass by its place in the first. Errors: those of read_shape,
  /// read_values and Observer::begin; shape-mismatch, value-not-finite, argument-invalid, state-invalid.
  Status update(Address values, const std::string& dtype, double count, double at, const std::string& shape,
                double batch);
  /// Required passes over the data.
  uint32_t passes() const noexcept { return observer_->passes(); }
  /// Errors: those of Observer::next_pass.
  Status next_pass();
  /// Errors: those of Observer::finish and check_finite.
  Result<Parts> finish();
  /// Errors: those of Observer::merge; argument-invalid.
  Status merge(const BoundObserver& other);
  void reset();

 private:
  enum class Numbers { none, counted, given };

  explicit BoundObserver(std::unique_ptr<Observer> observer) : observer_(std::move(observer)) {}

  bool goes_with(Numbers kind) const noexcept {
    return kind_ == Numbers::none || kind == Numbers::none || kind == kind_;
  }
  Status check_part(std::span<const float> x, uint64_t at, const std::vector<uint64_t>& shape, Numbers kind) const;
  Result<uint64_t> next_number() const;

  std::unique_ptr<Observer> observer_;
  Numbers kind_ = Numbers::none;
  std::vector<uint64_t> counted_;  // of the first pass: its own, then those merged
  size_t seen_ = 0;                // updates of this pass
};

}  // namespace wasmquant::bindings
