// Models whose head is their embedding: one tensor for both. Where a rotation changes the two differently, the output
// has a head of its own, made of the embedding; where none does, quantizing the embedding quantizes the head.
#pragma once
#include <optional>
#include <string>

#include "pipeline/plan/plan.h"

namespace wasmquant {

struct UntiedHead {
  uint32_t embedding = 0;  // index of its tensor
  std::string layer;       // "lm_head"
};

/// None where nothing rotates the residual stream, or the model has a head, or no embedding of a known name.
std::optional<UntiedHead> untied_head(const ModelIndex& model, const Config& config);

/// The warning about an embedding that is quantized and is probably the head, too: no layer of the plan is called like
/// one.
std::optional<Diagnostic> tied_head_warning(const Plan& plan);

}  // namespace wasmquant
