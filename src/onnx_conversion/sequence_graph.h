// What layers share about the tokens of a run: which keys each of them sees, and where it stands.
#pragma once
#include <string>

#include "model/config/architecture.h"
#include "onnx_conversion/rotation_graph.h"

namespace wasmquant::conversion {

/// Names of values of the graph.
struct SequenceValues {
  Value batch;      // [1]
  Value positions;  // int64 [batch, tokens]; "" if nothing depends on them
  Value places;     // the same, or int64 [1, tokens]: rows of a table of positions
  Value bias;  // float [batch, 1 or heads, tokens, keys], added to scores of full attention; as attended() reads it
  Value window_bias;  // the same of layers with a window; "" if none has one
  Value last_keys;    // int32 [batch]: the number of the last key
  Value key_count;    // int32 []
  Rotation rotation;  // empty if no layer rotates
};

/// Adds the inputs of a decoder: input_ids, attention_mask of past and new tokens and, if needed, position_ids.
SequenceValues decoder_inputs(const model::Architecture& architecture, GraphText& graph);
/// Of an encoder: input_ids, attention_mask and, if it has such a table, token_type_ids.
SequenceValues encoder_inputs(const model::Architecture& architecture, GraphText& graph);

}  // namespace wasmquant::conversion
