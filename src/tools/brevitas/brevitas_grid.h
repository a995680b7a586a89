// The grid of Brevitas (aihwkit-brevitas specification, section 0), for parsers to put into specs.
#pragma once
#include "config/spec/spec.h"

namespace wasmquant {

/// Releases of Brevitas that differ in numbers.
enum class BrevitasVersion : uint8_t { v0_10_3, v0_12_1, v0_13 };

/// Brevitas (2.4, 2.6, 2.7): weights leave out one code, activations use all. Dtypes as above. With `power_of_two`
/// thresholds are powers of two; 0.10.3 computes them before the floor, so only zeros give another scale.
constexpr RoundingGrid brevitas_grid(bool is_weight, bool power_of_two, BrevitasVersion version) {
  RoundingGrid grid;
  grid.divisor = power_of_two ? ScaleDivisor::code_count : ScaleDivisor::smallest_code;
  if (power_of_two)
    grid.threshold_rounding =
        version == BrevitasVersion::v0_10_3 ? ThresholdRounding::ceil_unfloored : ThresholdRounding::ceil;
  grid.zero_point_order = ZeroPointOrder::before_rounding;
  grid.arithmetic = Arithmetic::float32;
  grid.narrow = is_weight;
  grid.divides = true;
  grid.max_includes_zero = false;
  grid.smallest_scale = 0;
  grid.smallest_threshold = 1e-10f;
  return grid;
}

/// Brevitas' MXInt8: scales of 2^floor(log2 amax) / 128, half of the OCP specification's, so values above
/// 2^floor(log2 amax) saturate. Groups of 32, padded.
constexpr RoundingGrid brevitas_mx_integer_grid() {
  RoundingGrid grid = brevitas_grid(false, false, BrevitasVersion::v0_12_1);
  grid.threshold_rounding = ThresholdRounding::floor;
  grid.pads_groups = true;
  return grid;
}

}  // namespace wasmquant
