// The head of a model whose head is its embedding, where a rotation changes the two differently: a tensor of its own,
// made of the embedding.
#pragma once
#include <optional>
#include <string>

#include "config/spec/spec.h"
#include "pipeline/model_index/model_index.h"

namespace wasmquant {

struct UntiedHead {
  uint32_t embedding = 0;  // index of its tensor
  std::string layer;       // "lm_head"
};

/// None where nothing rotates the residual stream, or the model has a head, or no embedding of a known name.
std::optional<UntiedHead> untied_head(const ModelIndex& model, const Config& config);

}  // namespace wasmquant
