// Quantiles of the normal distribution in float32, as sqrt(2) erf^-1(2 p - 1):
//   erf(x) = 2 / sqrt(pi) sum over n of (-1)^n x^(2 n + 1) / (n! (2 n + 1))
#pragma once
#include <cmath>
#include <limits>

#include "numeric/exponential.h"

namespace wasmquant {

/// The x of which a normal variable is smaller with probability `share`; minus infinity for 0, infinity for 1, NaN outside.
inline float normal_quantile(float share) noexcept {
  constexpr double kTwoByRootPi = 1.1283791670955126;
  constexpr int kTerms = 120, kSteps = 60;
  const double wanted = double{2 * share - 1};
  if (!(std::abs(wanted) <= 1)) return std::numeric_limits<float>::quiet_NaN();
  if (std::abs(wanted) == 1) return static_cast<float>(wanted) * std::numeric_limits<float>::infinity();
  double x = 0;
  for (int step = 0; step < kSteps; ++step) {  // Newton's, from 0 without overshooting
    double power = x, sum = x;
    for (int n = 1; n < kTerms; ++n) {
      power *= -x * x / n;
      sum += power / (2 * n + 1);
    }
    x += (wanted / kTwoByRootPi - sum) * exp2_of(x * x / kLn2);
  }
  return static_cast<float>(x) * 1.41421356f;
}

}  // namespace wasmquant
