// What a search minimises: the squared error of fake quantization over elements of one scale.
#pragma once
#include <span>
#include <vector>

#include "config/spec/spec.h"
#include "quantize/qparams.h"

namespace wasmquant {

/// Differences, squares and sums are float32, added by halves: a search has to see the same values as equal as the
/// tools do, or it goes another way where the error is flat (ranges of one rounded zero point).
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
