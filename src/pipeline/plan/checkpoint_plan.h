// Plans of checkpoints: safetensors files whose weights lie as a checkpoint format says
// (checkpoint/checkpoint_format.h), each tensor in the file that its source is in.
#pragma once
#include "checkpoint/checkpoint_format.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// The model is neither ONNX nor GGUF. Errors: format-unsupported (every layer that the format cannot hold is in the
/// diagnostics), group-size-invalid, memory-budget.
Result<Plan> make_checkpoint_plan(const ModelIndex& model, const Config& config, const CheckpointFormat& format,
                                  const PlanOptions& options, List<Diagnostic>& diagnostics);

}  // namespace wasmquant
