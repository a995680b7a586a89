#include "algorithms/hessian.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/linear_algebra.h"
#include "core/message.h"
#include "kernels/kernels.h"

namespace wasmquant {

HessianAccumulator::HessianAccumulator(size_t columns, TeamShare share)
    : columns_(columns), share_(share), panel_(kProductDepth * columns), sum_(columns * columns) {}

// The rows from i on have (1 - i/n)^2 of the upper triangle.
size_t HessianAccumulator::first_row(size_t member) const noexcept {
  if (member >= share_.members) return columns_;
  const double left = 1 - static_cast<double>(member) / static_cast<double>(share_.members);
  constexpr size_t kStep = 8;  // whole tiles of products
  return static_cast<size_t>(static_cast<double>(columns_) * (1 - std::sqrt(left))) / kStep * kStep;
}

std::span<float> HessianAccumulator::band(size_t member) noexcept {
  sum_rest();
  const size_t first = first_row(member);
  return std::span(sum_).subspan(first * columns_, (first_row(member + 1) - first) * columns_);
}

void HessianAccumulator::sum_panel(const float* x, size_t rows) noexcept {
  const size_t first = first_row(share_.member), end = first_row(share_.member + 1);
  add_symmetric_rows({x, columns_}, rows, columns_, first, end, {sum_.data(), columns_});
}

void HessianAccumulator::sum_rest() noexcept {
  if (panel_rows_ != 0) sum_panel(panel_.data(), panel_rows_);
  panel_rows_ = 0;
}

Status HessianAccumulator::add(std::span<const float> x, uint64_t samples) {
  if (columns_ == 0 || x.size() % columns_ != 0)
    return error_at(ErrorCode::shape_mismatch, "", "{} input values do not fill whole rows of {} features", x.size(),
                    columns_);
  if (const int64_t at = kernels::find_non_finite(x); at >= 0)
    return error_at(ErrorCode::value_not_finite, "", "input row {}, column {} is NaN or infinite",
                    static_cast<size_t>(at) / columns_, static_cast<size_t>(at) % columns_);
  samples_ += samples;
  for (size_t rows = x.size() / columns_, done = 0; done < rows;) {
    const float* const next = x.data() + done * columns_;
    const size_t count = std::min(kProductDepth - panel_rows_, rows - done);
    done += count;
    if (count == kProductDepth) {
      sum_panel(next, count);
      continue;
    }
    std::copy(next, next + count * columns_, panel_.data() + panel_rows_ * columns_);
    panel_rows_ += count;
    if (panel_rows_ < kProductDepth) continue;
    sum_panel(panel_.data(), panel_rows_);
    panel_rows_ = 0;
  }
  return {};
}

Result<std::vector<float>> HessianAccumulator::finish() && {
  if (samples_ == 0) return Error{ErrorCode::state_invalid, "", "no calibration inputs were seen"};
  sum_rest();
  const double factor = 2.0 / static_cast<double>(samples_);
  for (size_t i = 0; i < columns_; ++i)
    for (size_t j = i; j < columns_; ++j) {
      const auto value = static_cast<float>(sum_[i * columns_ + j] * factor);
      sum_[i * columns_ + j] = sum_[j * columns_ + i] = value;
    }
  return std::move(sum_);
}

}  // namespace wasmquant
