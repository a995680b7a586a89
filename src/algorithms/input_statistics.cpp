#include "algorithms/input_statistics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/message.h"
#include "kernels/kernels.h"

namespace wasmquant {
namespace {

constexpr size_t kHeldOutPart = 4;  // one token of so many

}  // namespace

InputStatistics::InputStatistics(size_t columns, bool with_hessian, TeamShare share, bool holds_out)
    : largest_(columns), sum_(columns) {
  if (with_hessian) hessian_.emplace(columns, share);
  if (with_hessian && holds_out) held_out_.emplace(columns, share);
}

Status InputStatistics::add(std::span<const float> x) {
  const size_t columns = largest_.size();
  if (columns == 0 || x.size() % columns != 0)
    return error_at(ErrorCode::shape_mismatch, "", "{} input values do not fill whole rows of {} features", x.size(),
                    columns);
  if (const int64_t at = kernels::find_non_finite(x); at >= 0)
    return error_at(ErrorCode::value_not_finite, "", "input row {}, column {} is NaN or infinite",
                    static_cast<size_t>(at) / columns, static_cast<size_t>(at) % columns);
  const size_t rows = x.size() / columns;
  if (hessian_) TRY_VOID(hessian_->add(x, rows));
  if (const size_t apart = rows / kHeldOutPart; held_out_ && apart != 0) {
    TRY_VOID(held_out_->add(x.subspan((rows - apart) * columns), apart));
    held_out_tokens_ += apart;
  }
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
  if (!hessian_) return error_at(ErrorCode::state_invalid, "", "no Hessian was requested");
  return std::move(*hessian_).finish();
}

std::vector<float> InputStatistics::finish_held_out() {
  if (held_out_tokens_ == 0) return {};
  auto found = std::move(*held_out_).finish();
  return found ? std::move(*found) : std::vector<float>();
}

}  // namespace wasmquant
