#include "pipeline/checkpoint_plan/expert_choice.h"

#include "core/list.h"
#include "families/expert_weights.h"
#include "families/model_family.h"
#include "runtimes/loaders/loader.h"

namespace wasmquant {
namespace {

// Casts keep the tensors' layout.
bool only_casts(const Config& config) {
  const auto is_cast = [](const LayerConfig& layer) {
    return layer.weight.empty() || info_of(layer.weight.front().dtype).is_plain_cast();
  };
  bool all = is_cast(config.global);
  for (const auto& [name, layer] : config.layer) all &= is_cast(layer);
  for (const auto& [type, layer] : config.layer_type) all &= is_cast(layer);
  return all;
}

// The first tensor that holds several experts, or null.
const ModelTensor* stacked_experts(const ModelIndex& model) {
  for (const ModelTensor& tensor : model.tensors())
    if (families::is_expert_tensor(tensor.stored.name, tensor.stored.shape)) return &tensor;
  return nullptr;
}

// The first matrix whose rows hold all experts; null without one.
const ModelTensor* experts_in_rows(const ModelIndex& model) {
  for (const ModelTensor& tensor : model.tensors())
    if (families::are_experts_in_rows(tensor.stored.name, tensor.stored.shape.size())) return &tensor;
  return nullptr;
}

}  // namespace

Result<ExpertPlan> choose_experts(const ModelIndex& model, const families::ModelFamily& family, const Config& config,
                                  const CheckpointFormat& format, const PlanOptions& options) {
  ExpertPlan experts;
  if (!only_casts(config)) experts.storage = format.traits().experts;
  if (options.experts == ExpertChoice::exclude) {
    experts.left = "experts are to keep their dtype (--exclude-experts)";
    if (experts.storage == ExpertStorage::per_expert && !runtimes::loader_of(format).needs_single_experts(family))
      experts.storage = ExpertStorage::left;
    return experts;
  }
  if (const ModelTensor* const rows = experts_in_rows(model);
      rows != nullptr && options.experts == ExpertChoice::include)
    return error_at(ErrorCode::format_unsupported, rows->stored.name, runtimes::kExpertsInRows,
                    family.model_type.empty() ? std::string("unknown") : family.model_type);
  const ModelTensor* const stacked = experts.storage == ExpertStorage::per_expert ? stacked_experts(model) : nullptr;
  std::string limit = stacked == nullptr ? std::string() : runtimes::loader_of(format).stacked_experts_limit(family);
  if (limit.empty()) return experts;
  if (options.experts == ExpertChoice::include)
    return error_at(
        ErrorCode::format_unsupported, stacked->stored.name,
        "{}: quantized, they would be loaded as noise. Remove --include-experts, or write fake-quantized or "
        "gguf",
        limit);
  experts.leave(std::move(limit));
  return experts;
}

}  // namespace wasmquant
