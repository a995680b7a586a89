// The part of config.json that a forward pass reads, from GGUF metadata: the inverse of hyperparameters.h.
#pragma once
#include "core/json.h"
#include "core/result.h"
#include "formats/gguf/gguf_metadata.h"

namespace wasmquant::conversion {

/// Without vocab_size, tie_word_embeddings and biases, which tensors show. Errors: format-unsupported (architecture).
Result<json::Value> config_of_gguf(const gguf::Metadata& metadata);

}  // namespace wasmquant::conversion
