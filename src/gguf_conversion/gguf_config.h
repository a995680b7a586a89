// Reconstructs the part of config.json that a forward pass reads from a GGUF model's metadata: the inverse of
// hyperparameters.h.
#pragma once
#include "core/json.h"
#include "core/result.h"
#include "formats/gguf/gguf_metadata.h"

namespace wasmquant::conversion {

/// Without values that only tensors show: vocab_size, tie_word_embeddings, biases. Errors: format-unsupported for an
/// unknown architecture.
Result<json::Value> config_of_gguf(const gguf::Metadata& metadata);

}  // namespace wasmquant::conversion
