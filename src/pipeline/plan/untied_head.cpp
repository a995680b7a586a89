#include "pipeline/plan/untied_head.h"

#include "pipeline/calibration/calibration_steps.h"

namespace wasmquant {

std::optional<UntiedHead> untied_head(const ModelIndex& model, const Config& config) {
  bool rotates = false;
  for (const CalibratedAlgorithm& algorithm : calibrated_algorithms(config)) rotates |= algorithm.rotates_stream;
  if (!rotates) return std::nullopt;
  const List<ModelTensor>& tensors = model.tensors();
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const std::string& layer = tensors[i].layer;
    constexpr std::string_view kEmbedding = "embed_tokens";
    if (!layer.ends_with(kEmbedding)) continue;
    // As in forward_plan.cpp: only one family of checkpoints has its head below the language model.
    UntiedHead head{i, layer.starts_with("language_model.model.") ? "language_model.lm_head" : "lm_head"};
    if (model.find(head.layer + ".weight") == nullptr && model.find(head.layer + ".weight_packed") == nullptr)
      return head;
  }
  return std::nullopt;
}

}  // namespace wasmquant
