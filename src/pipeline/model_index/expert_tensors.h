// Tensors of several experts as a matrix each, for formats that store them so (families/expert_weights.h).
#pragma once
#include <memory>
#include <optional>

#include "families/expert_weights.h"
#include "pipeline/model_index/model_index.h"

namespace wasmquant {

/// How the matrices of a model's tensor of experts lie in it; nothing for other tensors, and where it cannot be told.
std::optional<families::ExpertTensor> experts_of(const ModelIndex& model, const ModelTensor& tensor,
                                                 const families::ModelFamily& family);

/// The model with a tensor for each expert's matrix, and for each expert's bias, that lies in a tensor of several. Null
/// where there is no such tensor.
std::unique_ptr<ModelIndex> split_experts(const ModelIndex& model, const families::ModelFamily& family);

}  // namespace wasmquant
