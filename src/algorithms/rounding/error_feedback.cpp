// The order of columns, damping, and the factor of the inverse.
#include "algorithms/rounding/error_feedback.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/linear_algebra.h"
#include "core/message.h"
#include "core/order.h"

namespace wasmquant {
namespace {

constexpr double kSmallestExtra = 0x1p-23;
constexpr int kOrderTries = 5;

// h[i][j] = h[order[i]][order[j]], in place: rows along the cycles of the permutation, then each row separately.
void permute_symmetric(std::span<float> h, const std::vector<uint32_t>& order) {
  const size_t n = order.size();
  std::vector<float> row(n);
  std::vector<uint32_t> source = order;  // a position whose row is in place has source == itself
  for (size_t start = 0; start < n; ++start) {
    if (source[start] == start) continue;
    std::copy_n(h.data() + start * n, n, row.data());
    for (size_t at = start;;) {
      const size_t from = std::exchange(source[at], static_cast<uint32_t>(at));
      std::copy_n(from == start ? row.data() : h.data() + from * n, n, h.data() + at * n);
      if (from == start) break;
      at = from;
    }
  }
  for (size_t i = 0; i < n; ++i) {
    std::copy_n(h.data() + i * n, n, row.data());
    for (size_t j = 0; j < n; ++j) h[i * n + j] = row[order[j]];
  }
}

// Restores the upper triangle from the lower one, and the diagonal.
void restore_upper(std::span<float> h, const std::vector<float>& diagonal, double extra) noexcept {
  const size_t n = diagonal.size();
  for (size_t i = 0; i < n; ++i) {
    h[i * n + i] = static_cast<float>(diagonal[i] + extra);
    for (size_t j = i + 1; j < n; ++j) h[i * n + j] = h[j * n + i];
  }
}

// factor_cholesky of a damped matrix, with the retry rule. The lower triangle keeps the original.
Status factor_with_retries(std::span<float> h, const std::vector<float>& diagonal, double damping) {
  const size_t n = diagonal.size();
  double magnitude = 0;
  for (const float value : diagonal) magnitude += std::fabs(value);
  restore_upper(h, diagonal, 0);
  if (factor_cholesky(h, n)) return {};
  double extra = std::max({std::fabs(damping), 1e-6 * magnitude / static_cast<double>(n), kSmallestExtra});
  for (int i = 0; i < kOrderTries; ++i, extra *= 10) {
    restore_upper(h, diagonal, extra);
    if (factor_cholesky(h, n)) return {};
  }
  return Error{ErrorCode::argument_invalid, "",
               "the Hessian is not positive definite even after damping its diagonal; use more calibration data or "
               "a larger damp_percent"};
}

// Of each column the place of its group, by the group's largest H_jj; zeros if columns have none.
std::vector<size_t> places_of_groups(const std::vector<float>& diagonal, uint64_t group_size) {
  std::vector<size_t> place(diagonal.size());
  if (group_size == 0) return place;
  const size_t size = group_size, whole = diagonal.size() / size;
  std::vector<float> largest(whole);
  for (size_t j = 0; j < whole * size; ++j) largest[j / size] = std::max(largest[j / size], diagonal[j]);
  const List<uint32_t> groups = sorted_order(whole, [&](uint32_t a, uint32_t b) { return largest[a] > largest[b]; });
  for (size_t at = 0; at < whole; ++at)
    for (size_t j = 0; j < size; ++j) place[groups[at] * size + j] = at;
  for (size_t j = whole * size; j < place.size(); ++j) place[j] = whole;
  return place;
}

std::vector<uint32_t> order_of(const std::vector<float>& diagonal, ColumnOrder by) {
  const std::vector<size_t> place = places_of_groups(diagonal, by.desc_act ? by.group_size : 0);
  const std::vector<size_t> place_of_part = places_of_groups(diagonal, by.desc_act ? by.part_size : 0);
  const auto comes_first = [&](uint32_t a, uint32_t b) {
    if (place[a] != place[b]) return place[a] < place[b];
    if (place_of_part[a] != place_of_part[b]) return place_of_part[a] < place_of_part[b];
    return by.desc_act && diagonal[a] > diagonal[b];
  };
  const List<uint32_t> order = sorted_order(diagonal.size(), comes_first);
  return {order.begin(), order.end()};
}

}  // namespace

Result<ErrorFeedback> factor_hessian(std::vector<float> hessian, size_t columns, double damp_percent, ColumnOrder by,
                                     bool has_factor) {
  const size_t n = columns;
  if (hessian.size() != n * n)
    return error_at(ErrorCode::shape_mismatch, "", "a Hessian of {} values does not fit {} columns", hessian.size(), n);
  ErrorFeedback feedback;
  std::vector<float> diagonal(n);
  double sum = 0;
  for (size_t j = 0; j < n; ++j) {
    float& value = hessian[j * n + j];
    if (!std::isfinite(value))
      return error_at(ErrorCode::value_not_finite, "", "column {} of the Hessian is NaN or infinite", j);
    if (value == 0) {
      feedback.dead.push_back(static_cast<uint32_t>(j));
      value = 1;
    }
    sum += diagonal[j] = value;
  }
  feedback.order = order_of(diagonal, by);
  if (n == 0) return feedback;
  if (!has_factor) {
    feedback.factor = std::move(hessian);
    return feedback;
  }
  if (by.desc_act) permute_symmetric(hessian, feedback.order);
  const double damping = damp_percent * sum / static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) diagonal[i] = static_cast<float>(hessian[i * n + i] + damping);
  TRY_VOID(factor_with_retries(hessian, diagonal, damping));
  for (size_t i = 0; i < n; ++i) std::fill_n(hessian.data() + i * n, i, 0.0f);
  feedback.factor = std::move(hessian);
  return feedback;
}

// Column j takes j^2 / 2 products, so the columns before j take j^3 / 6.
TeamShare::Range inverted_columns(size_t columns, TeamShare share) noexcept {
  const auto bound = [&](size_t member) {
    if (member >= share.members) return columns;
    const double part = static_cast<double>(member) / static_cast<double>(share.members);
    return static_cast<size_t>(static_cast<double>(columns) * std::cbrt(part)) / kInvertedStep * kInvertedStep;
  };
  return {bound(share.member), bound(share.member + 1)};
}

void invert_factor(ErrorFeedback& feedback, TeamShare::Range columns) noexcept {
  invert_upper(feedback.factor, feedback.columns(), columns.begin, columns.end);
}

Result<ErrorFeedback> error_feedback_of(std::vector<float> hessian, size_t columns, double damp_percent,
                                        ColumnOrder by) {
  TRY(feedback, factor_hessian(std::move(hessian), columns, damp_percent, by));
  invert_factor(feedback, {0, columns});
  return feedback;
}

}  // namespace wasmquant
