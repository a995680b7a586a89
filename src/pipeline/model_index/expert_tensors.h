// Splits stacked expert tensors into one matrix each, for formats that store them so (families/expert_weights.h).
#pragma once
#include <memory>
#include <optional>

#include "families/expert_weights.h"
#include "pipeline/model_index/model_index.h"

namespace wasmquant {

/// The layout of the matrices in a stacked expert tensor; nullopt for other tensors and unknown layouts.
std::optional<families::ExpertTensor> experts_of(const ModelIndex& model, const ModelTensor& tensor,
                                                 const families::ModelFamily& family);

/// Adds the matrices of stacked experts, or with `role` "bias" their vectors, to `out`. False if they cannot be separated.
bool add_expert_matrices(const families::ExpertTensor& experts, const ModelTensor& tensor, std::string_view role,
                         List<ModelTensor>& out);

/// `count` rows of a tensor from row `first` on, counted along all axes but the last: [count, columns]. All of them, or
/// for codes one matrix of a stack. Nullopt if they cannot be separated.
std::optional<ModelTensor> rows_of(const ModelTensor& tensor, uint64_t first, uint64_t count);

/// The model with stacked expert matrices and biases split into one tensor per expert; null if it has none.
std::unique_ptr<ModelIndex> split_experts(const ModelIndex& model, const families::ModelFamily& family);

}  // namespace wasmquant
