// The share of one expert in the task of a tensor that holds all of a layer.
#pragma once
#include "core/result.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// `part`: gate, up or down, of `rows` rows in each of `experts`. The task itself if it is of one expert; else rows of a stack, in which
/// each expert's gate may have its up behind it. Error: not-implemented for layouts of which rows cannot be stored by themselves.
Result<TensorTask> expert_task(TensorTask task, uint32_t expert, uint32_t part, uint32_t experts, uint64_t rows);

}  // namespace wasmquant
