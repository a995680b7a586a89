#include "observers/search/bounded_minimum.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace wasmquant {

BoundedMinimum bounded_minimum(const CallableRef<double(double)>& function, double low, double high) noexcept {
  constexpr double kTolerance = 1e-5;
  constexpr int kEvaluations = 500;
  const double golden = 0.5 * (3 - std::sqrt(5.0)), relative = std::sqrt(2.2e-16);
  double best = low + golden * (high - low), second = best, third = best;
  double best_value = function(best), second_value = best_value, third_value = best_value;
  double step = 0, step_before = 0;
  for (int evaluations = 1;; ++evaluations) {
    const double middle = 0.5 * (low + high);
    const double tolerance = relative * std::fabs(best) + kTolerance / 3;
    if (std::fabs(best - middle) <= 2 * tolerance - 0.5 * (high - low) || evaluations >= kEvaluations)
      return {best, best_value};
    bool is_parabolic = false;
    if (std::fabs(step_before) > tolerance) {
      // The parabola through the three points has its vertex at best + p / q.
      const double r = (best - second) * (best_value - third_value);
      double q = (best - third) * (best_value - second_value);
      double p = (best - third) * q - (best - second) * r;
      q = 2 * (q - r);
      if (q > 0) p = -p;
      q = std::fabs(q);
      const double limit = std::fabs(0.5 * q * std::exchange(step_before, step));
      if (std::fabs(p) < limit && p > q * (low - best) && p < q * (high - best)) {
        is_parabolic = true;
        step = p / q;
        const double x = best + step;
        if (x - low < 2 * tolerance || high - x < 2 * tolerance) step = middle >= best ? tolerance : -tolerance;
      }
    }
    if (!is_parabolic) {
      step_before = best >= middle ? low - best : high - best;
      step = golden * step_before;
    }
    const double x = best + (step >= 0 ? 1 : -1) * std::max(std::fabs(step), tolerance);
    const double value = function(x);
    if (value <= best_value) {
      (x >= best ? low : high) = best;
      third = second, third_value = second_value;
      second = best, second_value = best_value;
      best = x, best_value = value;
      continue;
    }
    (x < best ? low : high) = x;
    if (value <= second_value || second == best) {
      third = second, third_value = second_value;
      second = x, second_value = value;
    } else if (value <= third_value || third == best || third == second) {
      third = x, third_value = value;
    }
  }
}

}  // namespace wasmquant
