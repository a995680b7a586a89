// Observers over a sequence of whole tensors (calibration batches), as AMD Quark keeps their state between calls:
//   dynamic specs, per_group   each tensor replaces the range
//   per_tensor, static         ranges accumulate, whatever the shapes
//   per_channel, static        ranges accumulate while the number of channels stays; another number starts anew
#pragma once
#include <optional>

#include "observers/observer.h"

namespace wasmquant {

enum class BatchPolicy : uint8_t { accumulate, replace };

/// What a further tensor of granularity `next` does to a state gathered under `seen`.
BatchPolicy batch_policy_of(const QuantizationSpec& spec, const Granularity& seen, const Granularity& next) noexcept;

class BatchObserver {
 public:
  explicit BatchObserver(const QuantizationSpec& spec) : spec_(spec) {}

  /// One whole tensor: x has the product of `shape` elements. Errors: those of granularity_of, shape-mismatch when x
  /// and shape disagree, value-not-finite (the message names the element). After an error the state is as before.
  Status observe(std::span<const float> x, const std::vector<uint64_t>& shape);
  /// Adds what `other` has seen. Error: shape-mismatch when the two have different scale shapes.
  Status merge(const BatchObserver& other);
  void reset() noexcept { state_.reset(); }

  /// Nothing before the first tensor and after reset().
  const RangeObserver* range() const noexcept { return state_ ? &state_->range : nullptr; }
  const Granularity* granularity() const noexcept { return state_ ? &state_->granularity : nullptr; }
  const QuantizationSpec& spec() const noexcept { return spec_; }
  /// One per scale in internal order; before the first tensor one scale 1, zero point 0.
  std::vector<QParams> finish() const;

 private:
  struct State {
    Granularity granularity;  // of the last tensor
    RangeObserver range;
  };
  QuantizationSpec spec_;
  std::optional<State> state_;
};

}  // namespace wasmquant
