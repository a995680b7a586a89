// The activations of one layer in a plan: stages the format keeps, calibration requests, and resulting tensors.
#pragma once
#include <functional>

#include "checkpoint/checkpoint_format.h"
#include "core/list.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// What a plan leaves out.
struct OmittedActivations {
  bool inputs_left_out = false;        // the format cannot express dynamic inputs
  bool input_groups_left_out = false;  // the groups of dynamic inputs do not divide them
  bool static_left_out = false;        // there is no calibration, or the format cannot store static scales
  List<Error> errors;
};

/// Whether the output file says that a layer's inputs are quantized: as `inputs` of its config, if the format can.
bool quantizes_inputs(const Stages& inputs, const CheckpointFormat& format, const PlanOptions& options);

/// `planned`: a quantized weight of the layer, with its layout; `config`: the layer's. Sets inputs and outputs of
/// `outcome`, activations and importance of `planned`, and adds to the plan's `requests`. Errors: not-implemented
/// (importance of a layer that is not linear), format-unsupported (static scales the format cannot store).
OmittedActivations plan_activations(PlannedTensor& planned, LayerPlan& outcome, const LayerConfig& config,
                                    const CheckpointFormat& format, const PlanOptions& options,
                                    List<ActivationRequest>& requests);

/// Gives the inputs of one projection (gate_proj of experts 0, 1, ...) the largest of its experts' scales. For symmetric
/// specs per tensor; `is_symmetric` tells them by layer.
void share_expert_inputs(List<PlannedTensor>& tensors, const std::function<bool(const PlannedTensor&)>& is_symmetric);

/// Gives the outputs of the layers of one module that match one of `patterns` (k_proj and v_proj of an attention) the
/// largest of their scales. Source: AMD Quark's model_post_process.py, _merge_kv_scale.
void share_cache_scales(List<PlannedTensor>& tensors, const List<std::string>& patterns);

}  // namespace wasmquant
