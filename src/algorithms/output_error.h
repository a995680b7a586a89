// How much a layer's output changes when its weight does, on given inputs: squares of X D^T for a difference D.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "algorithms/linear_algebra.h"
#include "core/result.h"

namespace wasmquant {

class OutputError {
 public:
  /// x [tokens, columns]: sample inputs of the layer. Kept transposed.
  OutputError(std::span<const float> x, size_t columns);
  /// Of all inputs that a Gram matrix X^T X [columns, columns] (times anything) was made of: its Cholesky factor is as
  /// many inputs as there are columns, with the same squares up to that factor. The diagonal gets 1e-6 of its mean, or
  /// 10, 100, ... times as much where that is not enough. Error: argument-invalid when nothing is.
  static Result<OutputError> of_gram(std::vector<float> gram, size_t columns);

  size_t tokens() const noexcept { return tokens_; }
  size_t columns() const noexcept { return columns_; }

  /// sums[i] = sum over tokens t of (sum_j x[t][first + j] * d[i][j])^2, for d [sums.size(), count] that stands for the
  /// layer's columns [first, first + count). Products in float32, squares summed in float64; a row's sum does not
  /// depend on the other rows.
  void sum_squares(ConstMatrix d, size_t first, size_t count, std::span<double> sums) const noexcept;

 private:
  OutputError() = default;
  size_t tokens_ = 0, columns_ = 0;
  std::vector<float> x_;  // [columns, tokens]
};

}  // namespace wasmquant
