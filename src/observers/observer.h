// Observers: ranges of the data seen so far, one per scale. State is in the internal scale order of Granularity,
// so tiles in any order and observers of several workers give the same result (min and max commute).
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "quantize/granularity.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// One row of observers.def.
struct ObserverInfo {
  ObserverId id;
  std::string_view name;  // Quark's class name
  QScheme qscheme;        // the one it serves
};
std::span<const ObserverInfo> observers() noexcept;
const ObserverInfo& info_of(ObserverId id) noexcept;
/// By class name, with or without the ending `Observer`.
std::optional<ObserverId> observer_named(std::string_view name) noexcept;
/// The min-max observer of a qscheme; none for per_block.
std::optional<ObserverId> min_max_observer_for(QScheme qscheme) noexcept;

/// Ranges of one tensor, fed in pieces.
class RangeObserver {
 public:
  /// `spec.observer` must serve `spec.qscheme`. Every update() accumulates; what a further tensor does to the state
  /// (some specs replace it) is BatchObserver's affair.
  RangeObserver(const Granularity& granularity, const QuantizationSpec& spec);

  /// Elements [begin, begin + x.size()) of the flat tensor. Returns the flat index of the first non-finite element,
  /// or -1 when all are finite. Non-finite elements are left out of the range.
  int64_t update(std::span<const float> x, uint64_t begin) noexcept;
  /// Adds what `other` has seen; both have the same granularity.
  void merge(const RangeObserver& other) noexcept;
  /// The same from bare ranges, as another thread's observer gave them; one element per scale.
  void merge(std::span<const float> min, std::span<const float> max) noexcept;
  void reset() noexcept;

  std::span<const float> min() const noexcept { return min_; }
  std::span<const float> max() const noexcept { return max_; }
  /// One per scale, internal order.
  std::vector<QParams> finish() const;

 private:
  Granularity granularity_;
  QuantizationSpec spec_;
  std::vector<float> min_, max_;
};

}  // namespace wasmquant
