#include "observers/search/threshold_search.h"

#include <limits>

#include "core/order.h"
#include "observers/search/squared_error.h"

namespace wasmquant {
namespace {

constexpr int kSteps = 20;
using LossOf = CallableRef<float(float)>;

float search_grid(float from, const LossOf& loss) {
  const float base = from / kSteps;
  float best = base, least = std::numeric_limits<float>::infinity();
  for (int i = 2; i <= kSteps; ++i) {
    const float candidate = base * static_cast<float>(i), found = loss(candidate);
    if (!(found < least)) continue;
    best = candidate;
    least = found;
  }
  return best;
}

// From `low` up. Steps are those of torch.linspace(1 / 19, 1, 19) in float32, from the nearer end.
float search_interval(float low, float high, const LossOf& loss) {
  constexpr int kPoints = kSteps - 1;
  constexpr float kFirst = 1.0f / kPoints, kStep = (1 - kFirst) / (kPoints - 1);
  float best = low, least = loss(low);
  for (int i = 0; i < kPoints; ++i) {
    const double at = i < kPoints / 2 ? double{kFirst} + double{kStep} * i : 1 - double{kStep} * (kPoints - 1 - i);
    const float candidate = low + (high - low) * static_cast<float>(at), found = loss(candidate);
    if (!(found < least)) continue;
    best = candidate;
    least = found;
  }
  return best;
}

// Returns one of the last two points, not the best of all.
float search_fibonacci(float from, const LossOf& loss) {
  double fibonacci[kSteps + 1] = {0, 1};
  for (int i = 2; i <= kSteps; ++i) fibonacci[i] = fibonacci[i - 1] + fibonacci[i - 2];
  float left = from / kSteps, right = from, width = right - left;
  float section = static_cast<float>(fibonacci[kSteps - 2] / fibonacci[kSteps]) * width;
  float first = 0, second = 0, first_loss = 0, second_loss = 0;
  for (int i = 2; i <= kSteps; ++i) {
    const bool is_wide = section > width / 2;
    first = is_wide ? right - section : left + section;
    second = is_wide ? left + section : right - section;
    first_loss = loss(first);
    second_loss = loss(second);
    if (first_loss <= second_loss) right = second;
    if (first_loss >= second_loss) left = first;
    const float basis = first_loss != second_loss ? width : right - left;
    section = static_cast<float>(fibonacci[kSteps - i] / fibonacci[kSteps + 2 - i]) * basis;
    width = right - left;
  }
  return first_loss <= second_loss ? first : second;
}

}  // namespace

Threshold search_threshold(std::span<const float> x, const QuantizationSpec& spec, const Threshold& from, float low,
                           SearchMethod method) {
  const ScaleRule rule(spec);
  SquaredError error(x);
  const auto loss = [&](float length, float low_end) { return error(spec, rule.of_threshold(length, low_end)); };
  const auto loss_of_length = [&](float length) { return loss(length, low); };
  Threshold found;
  found.length = method == SearchMethod::grid       ? search_grid(from.length, loss_of_length)
                 : method == SearchMethod::interval ? search_interval(from.length / kSteps, from.length, loss_of_length)
                                                    : search_fibonacci(from.length, loss_of_length);
  if (spec.symmetric || !info_of(spec.dtype).is_integer) return found;
  const auto loss_of_low = [&](float low_end) { return loss(found.length, low_end); };
  found.low = method == SearchMethod::interval ? search_interval(from.low, from.low / kSteps, loss_of_low)
                                               : search_grid(from.low, loss_of_low);
  return found;
}

}  // namespace wasmquant
