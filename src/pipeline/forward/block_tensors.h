// The tensors of a block's step, and of its experts.
#pragma once
#include "model/config/architecture.h"
#include "pipeline/forward/step_tensors.h"

namespace wasmquant {

/// The weights of a block, below the step's name. Errors: those of StepTensors.
Status add_block(StepTensors& tensors, ForwardStep& step, const model::Architecture& architecture, uint32_t layer);

/// Then those of its experts. Each runs once its last matrix is loaded, after the router, and is then replaced by the next.
Status add_experts(StepTensors& tensors, ForwardStep& step, const model::Architecture& architecture);

}  // namespace wasmquant
