// Which layers of a block are quantized, as the config blocks of GPTQ name them for their loaders.
#pragma once
#include <string_view>

#include "checkpoint/checkpoint_format.h"
#include "core/list.h"

namespace wasmquant {

/// The layers of blocks that are quantized, for `modules_in_block_to_quantize`: ends of names ("mlp.down_proj"), and whole
/// names where the end is also that of a layer that is not. Null if all layers of blocks are quantized, for then loaders
/// need no list. transformers reads this list and not `dynamic`, gptqmodel only `dynamic`, vLLM both.
json::Value modules_to_quantize(const List<LayerPlan>& layers);

/// Whether the layer is a Linear that is none of several experts.
bool is_plain_linear(const LayerPlan& layer);
/// "mlp.down_proj" of "model.layers.3.mlp.down_proj" in transformers; empty outside blocks.
std::string_view name_in_block(const LayerPlan& layer);

}  // namespace wasmquant
