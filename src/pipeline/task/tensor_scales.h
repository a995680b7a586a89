// The scales of one tensor that must be known before its first code: all tiles are observed first. Where a scale's
// elements lie inside one tile and say all there is to know, tiles make their own scales instead (session_codes.cpp).
//
// Ranges are observed by any number of sessions, whose states are merged. Other observers keep more than ranges: one
// session sees the whole tensor, as often as they ask, and its state is the finished scales.
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

/// The layout's two stages, when both make codes.
std::optional<TwoStages> progressive_stages(const WeightLayout& layout);

class TensorScales {
 public:
  /// Whether the layout's weight needs them.
  static bool needed(const WeightLayout& layout) noexcept;
  /// Whether observing can be shared between sessions.
  static bool shared(const WeightLayout& layout) noexcept;
  /// Passes over the tensor before the one that writes codes: 0 where none is needed, 1 or 2.
  static uint32_t passes(const WeightLayout& layout);
  /// The same where scales are wanted before the codes all the same: 1 or 2.
  static uint32_t passes_of_observer(const WeightLayout& layout);
  /// Errors: memory-budget when an observer would keep more than it may, spec-invalid for lists of specs that cannot
  /// be observed.
  static Status check(const WeightLayout& layout, const std::string& name);

  /// `layout` outlives it. Larger scales than `largest` become `largest`, which the layout can hold.
  explicit TensorScales(const WeightLayout& layout, float largest = std::numeric_limits<float>::infinity());

  /// Before begin(): Observer::weigh, where an observer finds the scales.
  Status weigh(std::span<const float> importance) { return observer_ ? observer_->weigh(importance) : Status(); }
  Status begin();
  Status next_pass();
  /// Elements [at, at + x.size()) of the flat tensor. Returns the flat index of the first non-finite element, or -1.
  int64_t update(std::span<const float> x, uint64_t at) noexcept;
  /// Shared: min[], then max[], of what was seen. Else the finished scales.
  std::span<const float> state();
  /// Error: state-invalid.
  Status take_state(std::span<const float> state, const std::string& name);
  /// Scales that were found otherwise, one for each in internal order; storage rounds them. Error: state-invalid when
  /// there are not as many.
  Status give(std::span<const QParams> qparams, float second_scale, const std::string& name);
  /// Works out the scales. Errors: state-invalid before the last pass; format-unsupported when the data makes the dtype
  /// another one (GridRule::sign_by_data) and the layout stores codes.
  Status finish(const std::string& name);

  /// One for each scale, internal order; as they will be read back where codes are stored.
  std::span<const QParams> qparams() const noexcept { return qparams_; }
  /// That of scale_format e4m3, or of the other stage of two.
  float second_scale() const noexcept { return second_scale_; }
  /// The layout's, for this data.
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
  std::vector<QParams> qparams_;
  List<float> state_;
  float second_scale_ = 1.0f;
  bool finished_ = false;
};

}  // namespace wasmquant
