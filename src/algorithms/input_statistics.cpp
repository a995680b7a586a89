#include "algorithms/input_statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/message.h"
#include "kernels/kernels.h"

namespace wasmquant {

InputStatistics::InputStatistics(size_t columns, bool with_hessian, HessianShare share)
    : largest_(columns), sum_(columns) {
  if (with_hessian) hessian_.emplace(columns, share);
}

Status InputStatistics::add(std::span<const float> x) {
  const size_t columns = largest_.size();
  if (columns == 0 || x.size() % columns != 0)
    return error_at(ErrorCode::shape_mismatch, "", "{} input values are not rows of {} features", x.size(), columns);
  if (const int64_t at = kernels::find_non_finite(x); at >= 0)
    return error_at(ErrorCode::value_not_finite, "", "input row {}, column {} is NaN or infinite",
                    static_cast<size_t>(at) / columns, static_cast<size_t>(at) % columns);
  const size_t rows = x.size() / columns;
  if (hessian_) TRY_VOID(hessian_->add(x, rows));
  for (size_t row = 0; row < rows; ++row)
    for (size_t i = 0; i < columns; ++i) {
      const float magnitude = std::fabs(x[row * columns + i]);
      largest_[i] = std::max(largest_[i], magnitude);
      sum_[i] += double{magnitude};
    }
  tokens_ += rows;
  return {};
}

std::vector<float> InputStatistics::mean() const {
  std::vector<float> out(sum_.size());
  for (size_t i = 0; tokens_ != 0 && i < out.size(); ++i)
    out[i] = static_cast<float>(sum_[i] / static_cast<double>(tokens_));
  return out;
}

Result<std::vector<float>> InputStatistics::finish_hessian() {
  if (!hessian_) return error_at(ErrorCode::state_invalid, "", "the Hessian was not asked for");
  return std::move(*hessian_).finish();
}

}  // namespace wasmquant
