// What a plan does about the activations of one layer: which of the asked stages its format keeps, what calibration has
// to find, and where that is known, the tensors that hold it.
#pragma once
#include "checkpoint/checkpoint_format.h"
#include "core/list.h"
#include "pipeline/plan/plan.h"

namespace wasmquant {

/// What a plan cannot do about them.
struct LeftActivations {
  bool inputs_left_out = false;  // the format has no words for the dynamic inputs
  bool static_left_out = false;  // there is no calibration, or the format has no place for static scales
  List<Error> errors;
};

/// `planned` is a weight of the layer that is quantized, with its layout; `config` the layer's. Sets inputs and outputs
/// of `outcome`, activations and importance of `planned`, and adds to the plan's `requests`. Errors: not-implemented
/// (importance of what is no linear layer), format-unsupported (static scales that the format cannot hold).
LeftActivations plan_activations(PlannedTensor& planned, LayerOutcome& outcome, const LayerConfig& config,
                                 const CheckpointFormat& format, const PlanOptions& options,
                                 List<ActivationRequest>& requests);

}  // namespace wasmquant
