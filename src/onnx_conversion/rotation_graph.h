// Rotary position embedding in a graph: sines and cosines are computed from the positions of a run, so that a file has no table of all positions.
#pragma once
#include <string>

#include "model/config/architecture.h"
#include "onnx_conversion/graph_text.h"

namespace wasmquant::conversion {

/// Values [tokens of all sequences, pairs].
struct RotaryAngles {
  Value cosine, sine;
};

/// What layers rotate queries and keys by.
struct Rotation {
  Value
      rows;  // int64 [batch, tokens], 0, 1, 2 ... over all: positions for RotaryEmbedding, which row of the angles a token has
  RotaryAngles angles, window_angles;  // of layers without and with a window; empty if none of them rotates
  Value query_factor;                  // float [batch, tokens, 1], of queries; empty: none
};

/// `positions`: int64 [batch, tokens].
Rotation rotation_of(const model::Architecture& architecture, Value positions, GraphText& graph);

}  // namespace wasmquant::conversion
