#include "pipeline/plan/tied_head.h"

#include "core/message.h"
#include "pipeline/calibration/calibration_steps.h"

namespace wasmquant {

std::optional<UntiedHead> untied_head(const ModelIndex& model, const Config& config) {
  bool rotates = false;
  for (const CalibratedAlgorithm& algorithm : calibrated_algorithms(config)) rotates |= algorithm.rotates_stream;
  if (!rotates) return std::nullopt;
  const List<ModelTensor>& tensors = model.tensors();
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const std::string& layer = tensors[i].layer;
    const bool is_gguf = model.format().has_ggml_names;
    if (is_gguf ? layer != "token_embd" : !layer.ends_with("embed_tokens")) continue;
    // As in forward_plan.cpp: only one checkpoint family has its head below the language model.
    UntiedHead head{i, layer.starts_with("language_model.model.") ? "language_model.lm_head" : "lm_head"};
    if (model.find(is_gguf ? "output.weight" : head.layer + ".weight") == nullptr &&
        model.find(head.layer + ".weight_packed") == nullptr)
      return head;
  }
  return std::nullopt;
}

std::optional<Diagnostic> tied_head_warning(const Plan& plan) {
  const PlannedTensor* embedding = nullptr;
  for (const PlannedTensor& planned : plan.tensors) {
    const std::string_view layer = planned.weight.layer;
    const std::string_view part = layer.substr(layer.rfind('.') + 1);
    for (const std::string_view head : {"lm_head", "embed_out", "output", "head", "classifier", "score"})
      if (part == head) return std::nullopt;
    for (const std::string_view tokens : {"embed_tokens", "wte", "tok_embeddings", "word_embeddings"})
      if (part == tokens && !planned.task.is_copy && planned.task.layout->codes != CodeStorage::cast_values)
        embedding = &planned;
  }
  if (embedding == nullptr) return std::nullopt;
  return Diagnostic{Severity::warning, "tied-weights", embedding->task.name,
                    "this model has no separate output layer, so its embedding is probably also its output layer: "
                    "quantizing it rounds the logits",
                    text_of("exclude {q}, or give it more bits", embedding->weight.layer)};
}

}  // namespace wasmquant
