// What each layer of a model is, however config.json says so.
#pragma once
#include <string_view>

#include "core/list.h"
#include "families/config_reader.h"

namespace wasmquant::families {

/// A word for each layer, as in layer_types of transformers: "full_attention", "attention", "sliding_attention",
/// "linear_attention", "mamba", "conv", "moe", "mlp". From layer_types, layers_block_type, the letters of
/// hybrid_override_pattern, attn_layer_indices, or attn_layer_period and attn_layer_offset; empty if none is there.
/// Views of `config`.
List<std::string_view> layer_kinds(const ConfigReader& config, uint32_t layers);

}  // namespace wasmquant::families
