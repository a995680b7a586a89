// Weights that lie in a model otherwise than as one matrix [out, in], for formats that keep them so: the matrix that
// their bytes are, and the spec that means the same on it.
//   [E, out, in]  -> [E * out, in]   rows as they are; per tensor: [E, out * in] with a scale for each row
//   [in, out]     -> the same, with the axes of the spec exchanged
//   [E, in, out]  -> [E * in, out]   groups along the first axis, which must not reach into the next expert; per
//                                    channel: groups of `in`
// A scale per tensor, and the tensor's scale of NVFP4, is one for each stored expert (its gate and up together).
#pragma once
#include "checkpoint/checkpoint_format.h"

namespace wasmquant {

struct StackedWeight {
  WeightDescription weight;  // shape: of the matrix
  Stages stages;
};

/// Errors: group-size-invalid, format-unsupported where no matrix says the same.
Result<StackedWeight> stacked_weight(const WeightDescription& weight, const Stages& stages);

}  // namespace wasmquant
