// A GGUF model's metadata as the config.json that it was once made from, as far as a forward pass reads it: the other
// way round of hyperparameters.h.
#pragma once
#include "core/json.h"
#include "core/result.h"
#include "formats/gguf/gguf_metadata.h"

namespace wasmquant::conversion {

/// Without what only tensors say: vocab_size, tie_word_embeddings, biases. Errors: format-unsupported: an architecture
/// that is not known here.
Result<json::Value> config_of_gguf(const gguf::Metadata& metadata);

}  // namespace wasmquant::conversion
