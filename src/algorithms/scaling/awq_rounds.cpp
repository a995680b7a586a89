#include "algorithms/scaling/awq_rounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wasmquant {
namespace {

// The first candidates are kStride apart. Then parts up to `end` are measured of the best `kept` so far, and of those
// `beside` the best `centres`. Exponents 0.1 apart are as good as 0.05: the loss is flat around its least.
constexpr size_t kStride = 4;
constexpr struct {
  size_t end, kept, centres, beside;
} kRounds[] = {{4, kAwqCandidates, 0, 0}, {8, 3, 2, 2}, {16, 3, 0, 0}};

}  // namespace

AwqRounds::AwqRounds(bool has_parts, size_t candidates)
    : count_(candidates), parts_(has_parts ? kParts : 1), end_(has_parts ? kRounds[0].end : 1) {
  for (size_t step = 0; step < candidates; step += has_parts ? kStride : 1) candidates_.push_back(step);
  add_pieces();
}

void AwqRounds::add_pieces() {
  pieces_.clear();
  for (const size_t step : candidates_) pieces_.push_back({step, measured_[step], end_});
}

void AwqRounds::set_losses(size_t piece, std::span<const double> losses) noexcept {
  const AwqPiece& at = pieces_[piece];
  std::copy(losses.begin(), losses.end(), losses_[at.step].begin() + static_cast<ptrdiff_t>(at.begin));
  measured_[at.step] = at.end;
}

double AwqRounds::loss_of(size_t step) const noexcept {
  double sum = 0;
  for (size_t part = 0; part < end_; ++part) sum += losses_[step][part];
  return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
}

bool AwqRounds::next() {
  if (end_ == parts_) return false;
  ++round_;
  const auto is_better = [&](size_t a, size_t b) {
    const double of_a = loss_of(a), of_b = loss_of(b);
    return of_a != of_b ? of_a < of_b : a < b;
  };
  std::sort(candidates_.begin(), candidates_.end(), is_better);
  const auto [end, kept, centres, beside] = kRounds[round_];
  candidates_.resize(std::min(candidates_.size(), kept));
  const auto add = [&](size_t step) {
    if (step < count_ && std::find(candidates_.begin(), candidates_.end(), step) == candidates_.end())
      candidates_.push_back(step);
  };
  for (size_t i = 0; i < centres; ++i) {
    const size_t step = candidates_[i], place = step % kAwqSteps;
    if (place >= beside) add(step - beside);
    if (place + beside < kAwqSteps) add(step + beside);
  }
  add(0);
  std::sort(candidates_.begin(), candidates_.end());
  end_ = end;
  add_pieces();
  return true;
}

Result<AwqChoice> AwqRounds::choice(double outputs) const {
  const double unscaled = loss_of(0);
  AwqChoice found{kAwqCandidates, std::numeric_limits<double>::infinity(), unscaled / outputs};
  for (const size_t step : candidates_)
    if (const double loss = loss_of(step) / outputs; loss < found.loss) found = {step, loss, found.unscaled_loss};
  if (found.step == kAwqCandidates)
    return Error{ErrorCode::value_not_finite, "", "no scale gives a finite change of the output"};
  return found;
}

}  // namespace wasmquant
