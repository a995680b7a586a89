// Tensors that a loader reads as one: the experts of a layer.
#pragma once
#include "core/result.h"
#include "families/model_family.h"
#include "pipeline/plan/plan.h"
#include "runtimes/loaders/loader.h"

namespace wasmquant {

/// Fills Plan::stacks. Errors: format-unsupported for tensors of one stack that are not stored alike, tensor-missing for gaps.
Status stack_outputs(Plan& plan, const families::ModelFamily& family, const runtimes::Loader& loader);

/// Puts the work in the order of the files' bytes, so that a sink that only appends holds back little.
void sort_work(Plan& plan);

}  // namespace wasmquant
