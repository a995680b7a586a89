// The elements of a tensor, those of each scale together.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "quantize/granularity.h"
#include "quantize/qparams.h"

namespace wasmquant {

class ScaleSlices {
 public:
  /// `x` is a whole tensor; elements that are not finite are left out.
  ScaleSlices(const Granularity& granularity, std::vector<float> x);

  size_t count() const noexcept { return begin_.size() - 1; }
  /// In the order of the tensor.
  std::span<const float> operator[](size_t scale) const noexcept {
    return std::span<const float>(values_).subspan(begin_[scale], begin_[scale + 1] - begin_[scale]);
  }

 private:
  std::vector<float> values_;
  std::vector<uint64_t> begin_;  // [scales + 1]
};

/// Sum of (fake_quantize(x) - x)^2 for elements of one scale: differences in float32, squares and sum in float64.
double squared_error(std::span<const float> x, const QuantizationSpec& spec, const QParams& qparams) noexcept;

}  // namespace wasmquant
