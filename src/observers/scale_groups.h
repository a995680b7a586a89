// The elements of a tensor, grouped by scale.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "quantize/granularity.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// Sorts the elements by scale.
class ScaleGroups {
 public:
  /// `x` is a whole tensor; non-finite elements are skipped.
  ScaleGroups(const Granularity& granularity, std::vector<float> x);

  size_t count() const noexcept { return begin_.size() - 1; }
  /// The elements of one scale, in the order of the tensor.
  std::span<const float> operator[](size_t scale) const noexcept {
    return std::span<const float>(values_).subspan(begin_[scale], begin_[scale + 1] - begin_[scale]);
  }

 private:
  std::vector<float> values_;
  std::vector<uint64_t> begin_;  // [scales + 1]
};

}  // namespace wasmquant
