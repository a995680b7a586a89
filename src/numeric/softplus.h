// log(1 + exp(x)).
#pragma once
#include "numeric/exponential.h"

namespace wasmquant {

inline double softplus(double x) noexcept { return x > 20 ? x : log2_of(1 + exp2_of(x / kLn2)) * kLn2; }

}  // namespace wasmquant
