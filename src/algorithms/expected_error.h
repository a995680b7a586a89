// How much a layer's output is expected to change when its weight changes by D, judged by calibration inputs that may
// be too few. tr(D H D^T), the mean of |D x|^2 over those inputs, says nothing of directions that they do not show, and
// an algorithm that minimizes it moves its errors there. So correlations are shrunk towards none, and features' squares
// towards their geometric mean:
//   E |D x|^2 = tr(D H' D^T),   H'_ij = s_ij sqrt(d_i d_j) C_ij,   C_ij = H_ij / sqrt(H_ii H_jj),   s_ii = 1,
//   s_ij = (1 - (r/N)^2) min(1, 8 r/n),   d_j = H_jj^(1-w) g^w,   w = min(1, max(16/N, 2/r))
// with r the rank of H, N the tokens, n the columns with input, g the geometric mean of H_jj over these. r/N is the mean
// leverage of a token: 1 if every token shows a direction of its own, so that others will, too; near 0 if tokens stay
// within what others have shown. Fewer directions than an eighth of the columns are text that repeats itself rather than
// all there is: inputs of a byte model's first layer have a fifth. A dozen tokens do not tell which features are large.
// Source of the form: J. Schäfer, K. Strimmer, "A Shrinkage Approach to Large-Scale Covariance Matrix Estimation", 2005.
// Shares that are estimated from the sample, as theirs are, take a repeated token for certainty.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wasmquant {

/// Judges changes of the weights of layers that read one input.
class ExpectedError {
 public:
  struct Unfinished {};
  /// `hessian`: X^T X [columns, columns] times any factor, both triangles, finite, the diagonal not negative, of
  /// `tokens` inputs; the factor is that of all errors.
  /// `divisors` [columns]: what the inputs were divided by (SmoothQuant, AWQ); empty: ones. Squares are compared as they
  /// were before: dividing inputs and multiplying columns changes neither rank nor error.
  ExpectedError(std::span<const float> hessian, size_t columns, uint64_t tokens, std::span<const float> divisors = {});
  /// The same in three steps, the second of which another member of a team may do: then factor() is to be filled with
  /// what it has there.
  ExpectedError(std::span<const float> hessian, size_t columns, uint64_t tokens, Unfinished);
  void find_factor(std::span<const float> hessian);
  std::span<float> factor() noexcept { return factor_; }
  void finish(std::span<const float> divisors);

  /// Directions that the inputs show, about: columns of which more than a thousandth of the square is not a combination of
  /// other columns.
  size_t rank() const noexcept { return rank_; }
  /// Columns whose inputs are not all zero.
  size_t live_columns() const noexcept { return live_; }
  /// s_ij; 1 without live columns.
  double share() const noexcept;

  /// tr(D H' D^T) for d [rows, columns]. Products in float32, squares summed in float64, rows in order.
  double of(std::span<const float> d) const;
  /// The two sums of each row of d that of() adds up, of(sums) == of(d): rows are independent.
  void sum_rows(std::span<const float> d, std::span<double> sums) const;
  double of_sums(std::span<const double> sums) const noexcept;

 private:
  void shrink_squares(std::span<const float> divisors);

  size_t columns_, rank_ = 0, live_ = 0;
  uint64_t tokens_;
  std::vector<float> deviations_;  // sqrt(d_j)
  // Upper R, R R^T = H_ij / sqrt(H_ii H_jj) + kRidge I; empty without live columns, zeros if the matrix does not factor.
  std::vector<float> factor_;
  bool has_factor_ = false;
};

}  // namespace wasmquant
