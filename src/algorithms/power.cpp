#include "algorithms/power.h"

#include <limits>

#include "numeric/exponential.h"

namespace wasmquant {

double power(double base, double exponent) noexcept {
  if (exponent == 0) return 1;
  if (base == 0) return exponent > 0 ? 0 : std::numeric_limits<double>::infinity();
  return exp2_of(exponent * log2_of(base));
}

}  // namespace wasmquant
