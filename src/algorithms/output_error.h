// How much a layer's output changes on given inputs when its weight changes by D: squares of X D^T.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "algorithms/linear_algebra.h"
#include "core/result.h"

namespace wasmquant {

/// Measures changes of a layer's output on fixed inputs.
class OutputError {
 public:
  /// x [tokens, columns]: sample inputs of the layer. Kept transposed.
  OutputError(std::span<const float> x, size_t columns);
  /// From a Hessian, X^T X [columns, columns] times any factor: its Cholesky factor acts as `columns` inputs with the
  /// same squares up to that factor. The diagonal is damped by 1e-6 of its mean, or 10, 100, ... times as much if
  /// needed. Error: argument-invalid if no damping suffices.
  static Result<OutputError> of_hessian(std::vector<float> hessian, size_t columns);

  size_t tokens() const noexcept { return tokens_; }
  size_t columns() const noexcept { return columns_; }
  /// Sums of squares of each feature, times the factor of a Hessian.
  std::vector<float> squares() const;

  /// sums[i] = sum over tokens t of (sum_j x[t][first + j] * d[i][j])^2, for d [sums.size(), count], the change of the
  /// layer's columns [first, first + count). Products in float32, squares summed in float64; rows are independent.
  void sum_squares(ConstMatrix d, size_t first, size_t count, std::span<double> sums) const noexcept;

 private:
  OutputError() = default;
  size_t tokens_ = 0, columns_ = 0;
  bool is_triangular_ = false;  // token t has features up to t
  std::vector<float> x_;        // [columns, tokens]
};

}  // namespace wasmquant
