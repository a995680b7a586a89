// What calibration inputs say about one layer, and whether its algorithms did better than rounding to nearest.
#pragma once
#include <cstdint>

namespace wasmquant {

/// Squares are expected ones of the layer's outputs (algorithms/expected_error.h), summed over outputs.
struct LayerEvidence {
  uint64_t tokens = 0;         // that reached the layer
  uint64_t columns = 0;        // whose inputs are not all zero
  uint64_t rank = 0;           // directions that the inputs show
  double signal = 0;           // of the unquantized weight's outputs
  double error = 0;            // of the change that was stored
  double nearest_error = 0;    // of the change that rounding the unscaled weight to nearest would make
  bool aims_at_float = false;  // the method corrects for earlier layers: both errors lack the same unknown constant
  bool is_nearest = false;     // `on_worse` put rounding to nearest in the place of the method's
};

}  // namespace wasmquant
