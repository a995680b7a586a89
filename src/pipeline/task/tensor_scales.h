// The scales of a tensor whose tiles must all be observed before the first code. (If each tile contains all that its
// scales need, tiles find their own: session_codes.cpp.) Range observers can be shared: sessions' states are merged.
// Other observers need one session that sees the whole tensor, and the finished scales are its state.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/layout/weight_layout.h"
#include "core/list.h"
#include "core/result.h"
#include "observers/observer.h"
#include "quantize/stages.h"

namespace wasmquant {

/// The layout's two stages, if both make codes.
std::optional<TwoStages> progressive_stages(const WeightLayout& layout);

class TensorScales {
 public:
  /// Whether the layout's weight needs them.
  static bool needed(const WeightLayout& layout) noexcept;
  /// Whether one scale of the whole tensor can be shared with other tensors of the same layout: the second scale of
  /// scale_format e4m3 (any observer), that of two stages, or that of a spec per tensor with a range observer.
  static bool can_join(const WeightLayout& layout);
  /// Whether observing can be shared between sessions.
  static bool shared(const WeightLayout& layout) noexcept;
  /// Passes over the tensor before codes are written: 0, 1 or 2. `is_observed`: TensorTask::is_observed.
  static uint32_t passes(const WeightLayout& layout, bool is_observed);
  /// The same if scales are requested anyway: 1 or 2.
  static uint32_t passes_of_observer(const WeightLayout& layout);
  /// Errors: not-implemented if an observer would keep too much, spec-invalid for lists of specs that cannot be observed.
  static Status check(const WeightLayout& layout, const std::string& name);

  /// `layout` must outlive this object. Scales above `largest` are clamped to it; the layout must support it.
  explicit TensorScales(const WeightLayout& layout, float largest = std::numeric_limits<float>::infinity());

  /// Observer::weigh; call before begin().
  Status weigh(std::span<const float> importance) { return observer_ ? observer_->weigh(importance) : Status(); }
  /// The scale of the whole tensor also has to hold values of this range, those of other tensors that share it.
  void join(const ValueRange& others);
  Status begin();
  Status next_pass();
  /// Observes elements [at, at + x.size()). Returns the flat index of the first non-finite element, or -1.
  int64_t update(std::span<const float> x, uint64_t at) noexcept;
  /// The range seen so far, with a range observer.
  ValueRange observed() const noexcept { return range_of(ranges_->min(), ranges_->max()); }
  /// Shared: min[], then max[], so far, with the range of joined tensors. Else the finished scales.
  std::span<const float> state();
  /// Error: state-invalid.
  Status take_state(std::span<const float> state, const std::string& name);
  /// Sets given scales, in internal order; storage rounds them. Error: state-invalid if the count is wrong.
  Status give(std::span<const QParams> qparams, float second_scale, const std::string& name);
  /// Computes the scales. Errors: state-invalid before the last pass; format-unsupported if the data changes the dtype
  /// (RoundingGrid::sign_by_data) and the layout stores codes.
  Status finish(const std::string& name);

  /// In internal order; if codes are stored, as they will be read back.
  std::span<const QParams> qparams() const noexcept { return qparams_; }
  /// Of scale_format e4m3, or of the other of two stages.
  float second_scale() const noexcept { return second_scale_; }
  /// The layout's spec, resolved for this data.
  const QuantizationSpec& spec() const noexcept { return spec_; }

 private:
  void round_to_storage() noexcept;
  Status finish_ranges();
  Status finish_observer();

  const WeightLayout& layout_;
  QuantizationSpec spec_;
  float largest_;
  std::unique_ptr<RangeObserver> ranges_;
  std::unique_ptr<Observer> observer_;
  ValueRange joined_;
  std::vector<QParams> qparams_;
  List<float> state_;
  float second_scale_ = 1.0f;
  bool finished_ = false;
};

}  // namespace wasmquant
