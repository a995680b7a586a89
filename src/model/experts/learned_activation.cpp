#include "model/experts/learned_activation.h"

#include <algorithm>

#include "numeric/exponential.h"
#include "numeric/softplus.h"

namespace wasmquant::model {

void LearnedActivation::apply(std::span<float> values) const noexcept {
  const double slope = beta, least = eps, positive = softplus(alpha_p), negative = slope + softplus(alpha_n);
  for (float& value : values) {
    const double x = value;
    const double curve = x > 0 ? positive * x * x : negative * (exp2_of(std::min(x, least) / kLn2) - 1 - x);
    value = static_cast<float>(curve + slope * x);
  }
}

}  // namespace wasmquant::model
