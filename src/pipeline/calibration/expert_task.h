// Tasks of a plan for what the forward pass has of a tensor: the share of one expert, or a weight as [out, in] of a source with [in, out].
#pragma once
#include "core/result.h"
#include "pipeline/session/store_modified_weight.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// `part`: gate, up or down, of `rows` rows in each of `experts`. The task itself if it is of one expert; else rows of a stack, in which
/// each expert's gate may have its up behind it. Error: not-implemented for layouts of which rows cannot be stored by themselves.
Result<TensorTask> expert_task(TensorTask task, uint32_t expert, uint32_t part, uint32_t experts, uint64_t rows);

/// The gate, `part` 0, or the up of an expert that expert_task() gave as a matrix [in, gate and up]; for turned_task(), behind which
/// store_modified() writes it line by line.
TensorTask half_task(TensorTask task, uint32_t part);

/// Of a weight that the source has as [in, out]. Where the file has it so, too, store_modified() turns what it writes
/// (task.change.is_transposed). Error: not-implemented for layouts that are not values of whole bytes.
Result<TensorTask> turned_task(TensorTask task);

}  // namespace wasmquant
