// The loss of a search: the squared error of fake quantization over the elements of one scale.
#pragma once
#include <span>
#include <vector>

#include "config/spec/spec.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// Differences, squares and sums are float32, summed pairwise: the search must find the same ties as the reference
/// tools, or it diverges where the error is flat (ranges with the same rounded zero point).
class SquaredError {
 public:
  /// Summed by rows of `row` elements, which divide x, then over the rows.
  SquaredError(std::span<const float> x, size_t row) : x_(x), squares_(x.size()), row_(row) {}
  explicit SquaredError(std::span<const float> x) : SquaredError(x, x.size()) {}

  float operator()(const QuantizationSpec& spec, const QParams& qparams) noexcept;

 private:
  std::span<const float> x_;
  std::vector<float> squares_;
  size_t row_;
};

}  // namespace wasmquant
