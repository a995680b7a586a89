// Models whose head is their embedding: one tensor for both. If a rotation changes the two differently, the output gets
// a separate head made from the embedding; otherwise quantizing the embedding quantizes the head.
#pragma once
#include <optional>
#include <string>

#include "pipeline/plan/plan.h"

namespace wasmquant {

struct UntiedHead {
  uint32_t embedding = 0;  // index of its tensor
  std::string layer;       // "lm_head"
};

/// Nullopt if nothing rotates the residual stream, the model has a head, or the embedding's name is unknown.
std::optional<UntiedHead> untied_head(const ModelIndex& model, const Config& config);

/// The warning about a quantized embedding that is probably also the head: no layer of the plan has a head's name.
std::optional<Diagnostic> tied_head_warning(const Plan& plan);

}  // namespace wasmquant
