// Tensors of a model that are made of several tensors of its files, or of one with other axes or values.
#pragma once
#include <string>
#include <vector>

#include "core/result.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// The tensor of that name and shape that `assembly` makes of `parts`, in their order. In float32 if any of them is codes
/// or they differ, else in their dtype. Errors: dtype-unsupported for parts without values.
Result<ModelTensor> assembled_tensor(const std::string& name, std::vector<uint64_t> shape, Assembly assembly,
                                     const List<const ModelTensor*>& parts);

}  // namespace wasmquant
