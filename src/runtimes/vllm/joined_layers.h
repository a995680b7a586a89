// Layers that vLLM joins into one when it loads a checkpoint: q, k and v of an attention, gate and up of an MLP, all
// experts of a block. The parts of a joined layer must have one scheme, or the file does not load.
#pragma once
#include <string>
#include <string_view>

namespace wasmquant::vllm {

/// A name for the joined layer that a layer becomes a part of, the same for all its parts:
/// "model.layers.0.self_attn.q_proj+", "model.layers.0.mlp.experts". "" if it is joined with none. By joined_layers.def, and
/// everything below a component `experts`.
std::string joined_layer(std::string_view layer);

/// The same for layers that become one matrix and share its scales: those of joined_layer, but of each expert its own
/// gate and up, and layers that only some families join.
std::string joined_matrix(std::string_view layer);

}  // namespace wasmquant::vllm
