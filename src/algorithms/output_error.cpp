#include "algorithms/output_error.h"

#include <algorithm>
#include <utility>

namespace wasmquant {
namespace {

constexpr size_t kStripRows = 192, kPanelTokens = 96;
constexpr int kDampingTries = 6;

}  // namespace

OutputError::OutputError(std::span<const float> x, size_t columns)
    : tokens_(columns == 0 ? 0 : x.size() / columns), columns_(columns), x_(tokens_ * columns) {
  for (size_t t = 0; t < tokens_; ++t)
    for (size_t j = 0; j < columns_; ++j) x_[j * tokens_ + t] = x[t * columns_ + j];
}

Result<OutputError> OutputError::of_hessian(std::vector<float> hessian, size_t columns) {
  const size_t n = columns;
  std::vector<float> diagonal(n);
  double sum = 0;
  for (size_t j = 0; j < n; ++j) sum += diagonal[j] = hessian[j * n + j];
  // The lower triangle keeps the matrix while the upper one is factored.
  double damping = std::max(1e-6 * sum / static_cast<double>(n), 0x1p-100);
  for (int attempt = 0; attempt < kDampingTries; ++attempt, damping *= 10) {
    for (size_t i = 0; i < n; ++i) {
      hessian[i * n + i] = static_cast<float>(diagonal[i] + damping);
      for (size_t j = i + 1; j < n; ++j) hessian[i * n + j] = hessian[j * n + i];
    }
    if (!factor_cholesky(hessian, n)) continue;
    for (size_t i = 0; i < n; ++i) std::fill_n(hessian.data() + i * n, i, 0.0f);
    OutputError out;  // X^T X = R R^T: row j of R is feature j of all inputs
    out.tokens_ = out.columns_ = n;
    out.is_triangular_ = true;
    out.x_ = std::move(hessian);
    return out;
  }
  return Error{ErrorCode::argument_invalid, "",
               "the inputs' Hessian has no Cholesky factor; use more, or other, calibration data"};
}

std::vector<float> OutputError::squares() const {
  std::vector<float> out(columns_);
  for (size_t j = 0; j < columns_; ++j) {
    double sum = 0;
    for (size_t t = 0; t < tokens_; ++t) sum += double{x_[j * tokens_ + t]} * x_[j * tokens_ + t];
    out[j] = static_cast<float>(sum);
  }
  return out;
}

void OutputError::sum_squares(ConstMatrix d, size_t first, size_t count, std::span<double> sums) const noexcept {
  const size_t strip = std::min(kStripRows, sums.size()), panel = std::min(kPanelTokens, tokens_);
  std::vector<float> output(strip * tokens_), workspace(kernels::matmul_workspace(strip, panel, count));
  for (size_t row = 0; row < sums.size(); row += strip) {
    const size_t rows = std::min(strip, sums.size() - row);
    // Features that a panel of tokens does not have would add zeros, and tokens without any of them are left as zeros.
    for (size_t t = is_triangular_ ? first : 0; t < tokens_; t += panel) {
      const size_t width = std::min(panel, tokens_ - t);
      const size_t depth = is_triangular_ ? std::min(count, t + width - first) : count;
      kernels::matmul({d.data + row * d.stride, d.stride, 1}, {x_.data() + first * tokens_ + t, 1, tokens_}, depth,
                      rows, width, kernels::Update::set, kernels::Region::all, output.data() + t, tokens_,
                      workspace.data());
    }
    for (size_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (size_t t = 0; t < tokens_; ++t) sum += double{output[i * tokens_ + t]} * output[i * tokens_ + t];
      sums[row + i] = sum;
    }
  }
}

}  // namespace wasmquant
