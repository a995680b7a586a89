// Correlations of inputs, factored once; changes judged row by row against them.
#include "algorithms/expected_error.h"

#include <algorithm>
#include <cmath>

#include "algorithms/linear_algebra.h"
#include "numeric/exponential.h"

namespace wasmquant {
namespace {

// Keeps the correlations positive definite in float32: of a dependent column the factor leaves a pivot of about as much.
constexpr float kRidge = 0x1p-14f;
// Columns with a smaller pivot count as combinations of those factored before them.
constexpr float kSmallestPivot = 16 * kRidge;
// One in this many columns: fewer directions are repeated text.
constexpr double kFewDirections = 8;
// Of fewer tokens or directions, features' squares are not known at all.
constexpr double kFewTokens = 16, kFewRanks = 2;
constexpr int kRidgeTries = 5;
constexpr size_t kJudgedRows = 192, kJudgedColumns = 96;

}  // namespace

ExpectedError::ExpectedError(std::span<const float> hessian, size_t columns, uint64_t tokens,
                             std::span<const float> divisors)
    : ExpectedError(hessian, columns, tokens, Unfinished{}) {
  find_factor(hessian);
  finish(divisors);
}

ExpectedError::ExpectedError(std::span<const float> hessian, size_t columns, uint64_t tokens, Unfinished)
    : columns_(columns), tokens_(tokens), deviations_(columns) {
  for (size_t j = 0; j < columns; ++j) {
    deviations_[j] = std::sqrt(hessian[j * columns + j]);
    live_ += deviations_[j] > 0;
  }
  if (live_ != 0) factor_.resize(columns * columns);
}

void ExpectedError::finish(std::span<const float> divisors) {
  if (live_ == 0) return;
  has_factor_ = factor_.back() > 0;
  for (size_t j = 0; j < columns_; ++j) {
    const float pivot = factor_[j * columns_ + j];
    rank_ += deviations_[j] > 0 && pivot * pivot > kSmallestPivot;
  }
  rank_ = static_cast<size_t>(std::min<uint64_t>(rank_, tokens_));
  shrink_squares(divisors);
}

void ExpectedError::find_factor(std::span<const float> hessian) {
  const size_t n = factor_.empty() ? 0 : columns_;
  float ridge = kRidge;
  for (int attempt = 0; n != 0 && attempt < kRidgeTries; ++attempt, ridge *= 10) {
    for (size_t i = 0; i < n; ++i)
      for (size_t j = i; j < n; ++j) {
        // Divided one after the other: the product of two deviations may leave float32.
        const float scaled =
            deviations_[i] > 0 && deviations_[j] > 0 ? hessian[i * n + j] / deviations_[i] / deviations_[j] : 0.0f;
        factor_[i * n + j] = i == j ? 1 + ridge : scaled;
      }
    if (factor_cholesky(factor_, n)) return;
  }
  std::fill(factor_.begin(), factor_.end(), 0.0f);
}

void ExpectedError::shrink_squares(std::span<const float> divisors) {
  const auto divisor = [&](size_t j) { return divisors.empty() ? 1.0 : double{divisors[j]}; };
  const double few = std::max(kFewTokens / static_cast<double>(std::max<uint64_t>(tokens_, 1)),
                              kFewRanks / static_cast<double>(std::max<size_t>(rank_, 1)));
  const double weight = std::min(1.0, few);
  double sum = 0;
  for (size_t j = 0; j < columns_; ++j)
    if (deviations_[j] > 0) sum += log2_of(deviations_[j] * divisor(j));
  const double mean = sum / static_cast<double>(live_);
  for (size_t j = 0; j < columns_; ++j) {
    if (!(deviations_[j] > 0)) continue;
    const double logarithm = log2_of(deviations_[j] * divisor(j));
    deviations_[j] = static_cast<float>(exp2_of(logarithm + weight * (mean - logarithm)) / divisor(j));
  }
}

double ExpectedError::share() const noexcept {
  if (live_ == 0) return 1;
  const double rank = static_cast<double>(rank_), leverage = rank / static_cast<double>(std::max<uint64_t>(tokens_, 1));
  const double shown = std::min(1.0, kFewDirections * rank / static_cast<double>(live_));
  return shown * std::max(0.0, 1 - leverage * leverage);
}

void ExpectedError::sum_rows(std::span<const float> d, std::span<double> sums) const {
  const size_t n = columns_, height = sums.size() / 2;
  std::vector<float> scaled(kJudgedRows * n), output(kJudgedRows * kJudgedColumns),
      workspace(kernels::matmul_workspace(kJudgedRows, kJudgedColumns, n));
  std::fill(sums.begin(), sums.end(), 0.0);
  for (size_t row = 0; row < height; row += kJudgedRows) {
    const size_t rows = std::min(kJudgedRows, height - row);
    double* const of_rows = sums.data() + 2 * row;  // correlated, uncorrelated
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < n; ++j) {
        const float value = scaled[i * n + j] = d[(row + i) * n + j] * deviations_[j];
        of_rows[2 * i + 1] += double{value} * value;
      }
    for (size_t begin = 0; begin < n && has_factor_; begin += kJudgedColumns) {
      const size_t width = std::min(kJudgedColumns, n - begin);
      // Below the diagonal R is zero.
      kernels::matmul({scaled.data(), n, 1}, {factor_.data() + begin, 1, n}, begin + width, rows, width,
                      kernels::Update::set, kernels::Region::all, output.data(), kJudgedColumns, workspace.data());
      for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < width; ++j)
          of_rows[2 * i] += double{output[i * kJudgedColumns + j]} * output[i * kJudgedColumns + j];
    }
  }
}

double ExpectedError::of_sums(std::span<const double> sums) const noexcept {
  double correlated = 0, uncorrelated = 0;
  for (size_t i = 0; i < sums.size(); i += 2) {
    correlated += sums[i];
    uncorrelated += sums[i + 1];
  }
  return share() * correlated + (1 - share()) * uncorrelated;
}

double ExpectedError::of(std::span<const float> d) const {
  std::vector<double> sums(columns_ == 0 ? 0 : 2 * (d.size() / columns_));
  sum_rows(d, sums);
  return of_sums(sums);
}

}  // namespace wasmquant
