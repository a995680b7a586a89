// What loaders of GPTQ's and AWQ's layouts need to know and cannot read: transformers (by gptqmodel's kernels) and vLLM.
#pragma once
#include <optional>

#include "checkpoint/checkpoint_format.h"
#include "core/list.h"

namespace wasmquant {

/// The layers of blocks that are quantized, for `modules_in_block_to_quantize`: ends of names ("mlp.down_proj"), and whole
/// names where the end is also that of a layer that is not. Null if all layers of blocks are quantized, for then loaders
/// need no list. transformers reads this list and not `dynamic`, gptqmodel only `dynamic`, vLLM both.
json::Value modules_to_quantize(const List<LayerPlan>& layers);

/// The first layer that transformers cannot load, with the reason; nullopt if it loads all.
std::optional<LoaderLimit> gptq_loader_limit(const List<LayerPlan>& layers, const families::ModelFamily& family);
/// The same of AWQ's layout.
std::optional<LoaderLimit> awq_loader_limit(const List<LayerPlan>& layers, const families::ModelFamily& family);

}  // namespace wasmquant
