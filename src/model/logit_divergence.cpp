#include "model/logit_divergence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/exponential.h"
#include "numeric/exponential.h"

namespace wasmquant::model {
namespace {

/// exp(by), to the bit on every platform.
double exp_of(double by) noexcept { return exp2_of(by / kLn2); }

}  // namespace

LogitDivergence::Distribution::Distribution() noexcept : largest(-std::numeric_limits<float>::infinity()) {}

double LogitDivergence::Distribution::log_sum() const noexcept {
  // log2_of is defined for finite values only.
  return std::isfinite(sum) ? log2_of(sum) * kLn2 + largest : std::numeric_limits<double>::quiet_NaN();
}

LogitDivergence::LogitDivergence(std::vector<int32_t> targets) : positions_(targets.size()) {
  for (size_t i = 0; i < targets.size(); ++i) positions_[i].target = targets[i];
}

void LogitDivergence::add(std::span<float> reference, std::span<float> logits, size_t width, size_t first,
                          uint32_t first_token) noexcept {
  std::vector<float> differences(width);
  for (size_t row = 0; row * width < reference.size(); ++row) {
    Position& position = positions_[first + row];
    const std::span<float> ours = logits.subspan(row * width, width), theirs = reference.subspan(row * width, width);
    for (size_t i = 0; i < width; ++i) differences[i] = theirs[i] - ours[i];
    const int64_t target = int64_t{position.target} - first_token;
    const bool has_target = target >= 0 && target < static_cast<int64_t>(width);
    const auto accumulate = [&](Distribution& side, std::span<float> line) {
      if (has_target) side.target_logit = line[static_cast<size_t>(target)];
      const auto top = std::max_element(line.begin(), line.end());
      double factor = 1;
      if (*top > side.largest) {
        factor = exp_of(double{side.largest} - *top);  // 0 at first, as the sums are
        side.largest = *top;
        side.top = static_cast<int32_t>(first_token + (top - line.begin()));
      }
      side.sum = side.sum * factor + double{kernels::exponentials(line, side.largest, line.data())};
      return factor;
    };
    accumulate(position.model, ours);
    position.cross *= accumulate(position.reference, theirs);
    for (size_t i = 0; i < width; ++i) position.cross += double{theirs[i]} * differences[i];
  }
}

PositionDivergence LogitDivergence::at(size_t position) const noexcept {
  const Position& found = positions_[position];
  const double reference = found.reference.log_sum(), model = found.model.log_sum();
  return {found.cross / found.reference.sum - reference + model, model - found.model.target_logit,
          reference - found.reference.target_logit, found.reference.top == found.model.top};
}

}  // namespace wasmquant::model
