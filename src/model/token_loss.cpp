#include "model/token_loss.h"

#include <cmath>
#include <limits>
#include <utility>

#include "kernels/exponential.h"
#include "kernels/kernels.h"
#include "numeric/exponential.h"

namespace wasmquant::model {

TokenLoss::TokenLoss(std::vector<int32_t> targets)
    : targets_(std::move(targets)),
      largest_(targets_.size(), -std::numeric_limits<float>::infinity()),
      target_logits_(targets_.size()),
      sums_(targets_.size()) {}

void TokenLoss::add(std::span<float> logits, size_t width, size_t first, uint32_t first_token) noexcept {
  for (size_t row = 0; row * width < logits.size(); ++row) {
    const std::span<float> line = logits.subspan(row * width, width);
    const size_t position = first + row;
    const int64_t target = int64_t{targets_[position]} - first_token;
    if (target >= 0 && target < static_cast<int64_t>(width))
      target_logits_[position] = line[static_cast<size_t>(target)];
    float& largest = largest_[position];
    double& sum = sums_[position];
    const float here = kernels::reduce_extent(line).max;
    if (here > largest) {
      sum *= exp2_of((double{largest} - here) / kLn2);  // exp2_of(-infinity) is 0, as the sum is
      largest = here;
    }
    sum += double{kernels::exponentials(line, largest, line.data())};
  }
}

double TokenLoss::loss(size_t position) const noexcept {
  // log2_of is defined for finite values only.
  if (!std::isfinite(sums_[position])) return std::numeric_limits<double>::quiet_NaN();
  return log2_of(sums_[position]) * kLn2 + largest_[position] - target_logits_[position];
}

}  // namespace wasmquant::model
