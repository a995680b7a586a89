#include "algorithms/scaling/awq_rounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace wasmquant {
namespace {

// Parts up to `end` are measured of the best `candidates` so far.
constexpr struct { size_t end, candidates; } kRounds[] = {{2, kAwqSteps + kDuoSteps}, {4, 10}, {8, 6}, {16, 4}};

}  // namespace

AwqRounds::AwqRounds(bool has_parts, size_t steps)
    : parts_(has_parts ? kParts : 1), end_(has_parts ? kRounds[0].end : 1) {
  for (size_t step = 0; step < steps; ++step) candidates_.push_back(step);
  add_pieces(0);
}

void AwqRounds::add_pieces(size_t begin) {
  pieces_.clear();
  for (const size_t step : candidates_) pieces_.push_back({step, begin, end_});
}

void AwqRounds::set_losses(size_t piece, std::span<const double> losses) noexcept {
  const AwqPiece& at = pieces_[piece];
  std::copy(losses.begin(), losses.end(), losses_[at.step].begin() + static_cast<ptrdiff_t>(at.begin));
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
  candidates_.resize(std::min(candidates_.size(), kRounds[round_].candidates));
  if (std::find(candidates_.begin(), candidates_.end(), 0) == candidates_.end()) candidates_.push_back(0);
  std::sort(candidates_.begin(), candidates_.end());
  const size_t begin = std::exchange(end_, kRounds[round_].end);
  add_pieces(begin);
  return true;
}

Result<AwqChoice> AwqRounds::choice(double outputs) const {
  const double unscaled = loss_of(0);
  AwqChoice found{losses_.size(), std::numeric_limits<double>::infinity(), unscaled / outputs};
  for (const size_t step : candidates_)
    if (const double loss = loss_of(step) / outputs; loss < found.loss) found = {step, loss, found.unscaled_loss};
  if (found.step == losses_.size())
    return Error{ErrorCode::value_not_finite, "", "no scale keeps the change of the output finite"};
  return found;
}

}  // namespace wasmquant
