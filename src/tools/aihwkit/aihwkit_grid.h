// The grid of aihwkit (aihwkit-brevitas specification, section 0), for parsers to put into specs.
#pragma once
#include "config/spec/spec.h"

namespace wasmquant {

/// IBM aihwkit (1.4). Symmetric specs are of the signed dtype, asymmetric ones of the unsigned one.
constexpr RoundingGrid aihwkit_grid() {
  RoundingGrid grid;
  grid.divisor = ScaleDivisor::largest_code;
  grid.zero_point_order = ZeroPointOrder::after_rounding;
  grid.arithmetic = Arithmetic::float32;
  grid.sign_by_data = grid.divides = grid.zero_point_of_unfloored = true;
  grid.smallest_scale = grid.smallest_max = 1e-8f;
  return grid;
}

}  // namespace wasmquant
