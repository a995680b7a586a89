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
constexpr size_t kJudgedRows = 64, kJudgedColumns = 128;

}  // namespace

ExpectedError::ExpectedError(std::span<const float> hessian, size_t columns, uint64_t tokens,
                             std::span<const float> divisors)
    : columns_(columns), tokens_(tokens), deviations_(columns) {
  const size_t n = columns;
  for (size_t j = 0; j < n; ++j) {
    deviations_[j] = std::sqrt(hessian[j * n + j]);
    live_ += deviations_[j] > 0;
  }
  if (live_ == 0) return;
  factor_correlations(hessian);
  rank_ = static_cast<size_t>(std::min<uint64_t>(rank_, tokens));
  shrink_squares(divisors);
}

void ExpectedError::factor_correlations(std::span<const float> hessian) {
  const size_t n = columns_;
  factor_.resize(n * n);
  float ridge = kRidge;
  for (int attempt = 0; attempt < kRidgeTries; ++attempt, ridge *= 10) {
    for (size_t i = 0; i < n; ++i)
      for (size_t j = i; j < n; ++j) {
        // Divided one after the other: the product of two deviations may leave float32.
        const float scaled =
            deviations_[i] > 0 && deviations_[j] > 0 ? hessian[i * n + j] / deviations_[i] / deviations_[j] : 0.0f;
        factor_[i * n + j] = i == j ? 1 + ridge : scaled;
      }
    if (!factor_cholesky(factor_, n)) continue;
    for (size_t j = 0; j < n; ++j)
      rank_ += deviations_[j] > 0 && factor_[j * n + j] * factor_[j * n + j] > kSmallestPivot;
    return;
  }
  factor_.clear();
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

double ExpectedError::of(std::span<const float> d) const {
  const size_t n = columns_, height = n == 0 ? 0 : d.size() / n;
  std::vector<float> transposed(n * kJudgedRows), output(kJudgedRows * kJudgedColumns);
  double correlated = 0, uncorrelated = 0;
  for (size_t row = 0; row < height; row += kJudgedRows) {
    const size_t rows = std::min(kJudgedRows, height - row);
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < n; ++j) {
        const float scaled = d[(row + i) * n + j] * deviations_[j];
        transposed[j * kJudgedRows + i] = scaled;
        uncorrelated += double{scaled} * scaled;
      }
    for (size_t begin = 0; begin < n && !factor_.empty(); begin += kJudgedColumns) {
      const size_t width = std::min(kJudgedColumns, n - begin);
      std::fill(output.begin(), output.end(), 0.0f);
      // Below the diagonal R is zero.
      add_product(1, {transposed.data(), kJudgedRows}, {factor_.data() + begin, n}, begin + width, rows, width,
                  {output.data(), kJudgedColumns});
      for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < width; ++j)
          correlated += double{output[i * kJudgedColumns + j]} * output[i * kJudgedColumns + j];
    }
  }
  return share() * correlated + (1 - share()) * uncorrelated;
}

}  // namespace wasmquant
