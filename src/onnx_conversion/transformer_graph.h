// A transformer as an ONNX graph in float32, made from what its config.json says, without running it. Decoders have a cache of keys and
// values; inputs and outputs are called as transformers.js and Optimum call them:
//   decoder   input_ids, attention_mask, position_ids, past_key_values.N.key and .value [batch, kv_heads, past, head_dim]
//             -> logits, present.N.key and .value
//   encoder   input_ids, attention_mask, token_type_ids -> last_hidden_state
// Attention is GroupQueryAttention or MultiHeadAttention of ONNX Runtime, whose mask is added to the scores; norms without a mean are its
// SimplifiedLayerNormalization.
#pragma once
#include <string>

#include "core/result.h"
#include "model/config/architecture.h"
#include "onnx_conversion/stored_weights.h"

namespace wasmquant::conversion {

/// What an architecture has that no graph is built of: "mixtures of experts"; "": nothing.
std::string_view unbuilt_part(const model::Architecture& architecture) noexcept;

/// The ModelProto of an architecture that can be built. `says_tied`: whether config.json says if the head is the
/// embedding. Errors: tensor-missing, shape-mismatch, dtype-unsupported.
Result<std::string> transformer_graph(const model::Architecture& architecture, bool says_tied,
                                      const StoredTensors& tensors);

}  // namespace wasmquant::conversion
