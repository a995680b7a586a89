// The ranges of one tensor fed in pieces, one per scale, in the internal scale order of Granularity. Minimum and
// maximum commute and are idempotent, so pieces may come in any order, twice, or from several observers (merge).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "quantize/granularity.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// Accumulates the ranges of one tensor.
class RangeObserver {
 public:
  /// Every update() accumulates; Observer decides what further tensors do to the state.
  RangeObserver(const Granularity& granularity, const QuantizationSpec& spec);

  /// Elements [begin, begin + x.size()) of the flat tensor. Returns the flat index of the first non-finite element,
  /// or -1 when all are finite. Non-finite elements are left out of the range.
  int64_t update(std::span<const float> x, uint64_t begin) noexcept;
  /// Adds what `other` has seen; both have the same number of scales.
  void merge(const RangeObserver& other) noexcept;
  /// The same from bare ranges of another thread's observer; one element per scale.
  void merge(std::span<const float> min, std::span<const float> max) noexcept;
  void reset() noexcept;

  const Granularity& granularity() const noexcept { return granularity_; }
  std::span<const float> min() const noexcept { return min_; }
  std::span<const float> max() const noexcept { return max_; }
  /// Scales of these ranges by qparams_of, internal order.
  std::vector<QParams> finish() const;
  /// The second scale of the whole tensor, for scale_format e4m3.
  float second_scale() const noexcept { return second_scale_of(range_of(min_, max_), spec_); }

 private:
  Granularity granularity_;
  QuantizationSpec spec_;
  std::vector<float> min_, max_;
};

}  // namespace wasmquant
