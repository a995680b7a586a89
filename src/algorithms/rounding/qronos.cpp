#include "algorithms/rounding/qronos.h"

#include <cmath>
#include <vector>

#include "core/message.h"
#include "kernels/matmul.h"

namespace wasmquant {
namespace {

// H_11 = sum R_1j^2 for the first row of R = U^-1, r U = e_1.
double first_diagonal(const ErrorFeedback& feedback) {
  const size_t n = feedback.columns();
  std::vector<double> rest(n);
  rest[0] = 1;
  double sum = 0;
  for (size_t j = 0; j < n; ++j) {
    const float* const u = feedback.factor.data() + j * n;
    const double r = rest[j] / u[j];
    for (size_t k = j + 1; k < n; ++k) rest[k] -= r * u[k];
    sum += r * r;
  }
  return sum;
}

}  // namespace

double largest_eigenvalue(std::span<const float> matrix, size_t n) {
  constexpr int kIterations = 30;
  std::vector<double> x(n, 1.0), y(n);
  double value = 0;
  for (int i = 0; i < kIterations; ++i) {
    double norm = 0;
    for (const double each : x) norm += each * each;
    norm = std::sqrt(norm);
    if (norm == 0) return 0;
    for (double& each : x) each /= norm;
    value = 0;
    for (size_t row = 0; row < n; ++row) {
      double sum = 0;
      for (size_t j = 0; j < n; ++j) sum += double{matrix[row * n + j]} * x[j];
      y[row] = sum;
      value += sum * x[row];
    }
    x.swap(y);
  }
  return value;
}

Status correct_for_drift(const ErrorFeedback& feedback, std::span<const float> drift, std::span<float> weight) {
  using kernels::Region, kernels::Update;
  const size_t n = feedback.columns();
  if (n == 0 || drift.size() != n * n || weight.size() % n != 0)
    return error_at(ErrorCode::shape_mismatch, "", "{} weights and a drift of {} values do not fit {} columns",
                    weight.size(), drift.size(), n);
  const size_t rows = weight.size() / n;
  const float* const u = feedback.factor.data();
  std::vector<float> change(weight.size()), ordered(weight.size()), workspace(kernels::matmul_workspace(rows, n, n));
  kernels::matmul({weight.data(), n, 1}, {drift.data(), 1, n}, n, rows, n, Update::set, Region::all, change.data(), n,
                  workspace.data());
  for (size_t at = 0; at < weight.size(); at += n)
    for (size_t i = 0; i < n; ++i) ordered[at + i] = change[at + feedback.order[i]];
  std::vector<float> first(rows);
  const double diagonal = first_diagonal(feedback);
  for (size_t row = 0; row < rows; ++row) first[row] = static_cast<float>(ordered[row * n] / diagonal);
  // s = H^-1 c, except for the first element: H_22^-1 H_21 = -U_1j / U_11.
  kernels::matmul({ordered.data(), n, 1}, {u, n, 1}, n, rows, n, Update::set, Region::all, change.data(), n,
                  workspace.data());
  kernels::matmul({change.data(), n, 1}, {u, 1, n}, n, rows, n, Update::set, Region::all, ordered.data(), n,
                  workspace.data());
  for (size_t row = 0; row < rows; ++row) {
    const float* const s = ordered.data() + row * n;
    float* const w = weight.data() + row * n;
    const float excess = (s[0] - first[row]) / u[0];
    w[feedback.order[0]] += first[row];
    for (size_t j = 1; j < n; ++j) w[feedback.order[j]] += s[j] - excess * u[j];
  }
  return {};
}

}  // namespace wasmquant
