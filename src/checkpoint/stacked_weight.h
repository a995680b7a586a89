// Weights not stored as one matrix [out, in], for formats that keep the arrangement: their bytes as a matrix, and its
// spec.
//   [E, out, in]  -> [E * out, in]   same rows; per tensor: [E, out * in] with a scale for each row
//   [in, out]     -> the same, with the axes of the spec exchanged
//   [E, in, out]  -> [E * in, out]   groups along the first axis, which must not cross experts; per channel: groups of
//                                    `in`
// Per-tensor scales, and the tensor scale of NVFP4, are one per stored expert (gate and up together).
#pragma once
#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

/// A weight as one matrix.
struct StackedWeight {
  WeightDescription weight;  // shape: of the matrix
  Stages stages;
};

/// Errors: group-size-invalid, format-unsupported if no matrix is equivalent.
Result<StackedWeight> stacked_weight(const WeightDescription& weight, const Stages& stages);

}  // namespace wasmquant
