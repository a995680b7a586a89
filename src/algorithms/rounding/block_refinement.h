// Improves a weight in GGUF's blocks further, as refinement.h does: each scale and minimum that a block can store, for the codes
// that it has, then each code. One that changes by t has the error's change t^2 u^T H u - 2 t u^T H (w - q), for u the codes of
// its run, or ones.
#pragma once
#include <cstdint>
#include <span>

#include "numeric/ggml_type.h"

namespace wasmquant {

/// One pass. hessian [n, n], damped; weight [rows, n]; values [rows, n] are those of `blocks` before and after. Rows are
/// independent, and no row's error grows, but for rounding. Units of 256 elements stay, and scales of more than
/// Descent::kColumns. Blocks with a codebook stay, too: an entry is not one column's. Requires what gptq_blocks does.
void refine_blocks(std::span<const float> hessian, GgmlType type, std::span<const float> weight,
                   std::span<float> values, std::span<uint8_t> blocks);

}  // namespace wasmquant
