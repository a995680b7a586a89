// Brent's bounded minimum of a function of one variable: golden section with parabolic steps.
// Source: R. Brent, "Algorithms for Minimization without Derivatives", 1973, in the fminbound form (Forsythe, Malcolm,
// Moler 1977) of scipy.optimize.minimize_scalar(method="bounded"), with its tolerances (xatol 1e-5, 500 evaluations).
#pragma once
#include "core/order.h"

namespace wasmquant {

/// Where the minimum is, and its value.
struct BoundedMinimum {
  double at, value;
};
/// Minimises `function` on [low, high].
BoundedMinimum bounded_minimum(const CallableRef<double(double)>& function, double low, double high) noexcept;

}  // namespace wasmquant
