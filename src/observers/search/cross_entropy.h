// How much quantizing scores changes their softmax probabilities.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace wasmquant {

/// A tensor as [outer, classes, inner]: the softmax runs over the second dimension. One-dimensional tensors, and
/// `count` elements that are not the whole tensor, are all classes.
struct Classes {
  uint64_t outer = 1, classes = 1, inner = 1;
};
/// The layout of a tensor of this shape, of which `count` elements are given.
Classes classes_of(std::span<const uint64_t> shape, uint64_t count) noexcept;

/// log_softmax of v in place, each step rounded to float32.
void log_softmax(std::span<float> v, const Classes& layout) noexcept;

/// sum of -softmax(x) * log_softmax(y) in float32.
class CrossEntropy {
 public:
  CrossEntropy(std::span<const float> x, const Classes& layout);
  /// Overwrites `y`.
  float operator()(std::span<float> y) const noexcept;

 private:
  Classes layout_;
  std::vector<float> probabilities_;  // of x, in its layout
};

}  // namespace wasmquant
