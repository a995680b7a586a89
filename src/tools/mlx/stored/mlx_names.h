// mlx-lm renames and rearranges the tensors of a model when it converts it. Here they become those of the class of
// transformers again: single or fused experts, projections that latent attention has in one, convolutions and norms.
#pragma once
#include <string>

#include "core/list.h"
#include "core/result.h"
#include "pipeline/model_index/model_index.h"

namespace wasmquant {

/// `model`: an MLX folder; `tensors`: its tensors, decoded, in their order; they get their names, shapes and values in
/// transformers. `config`: set to the config.json of the language model if the towers of its class are not there; else
/// not changed. Errors: format-unsupported, with the tensor, if the family is known to be arranged in a way that cannot
/// be undone, or is unknown and has names or axes that are MLX's; those of Restorer.
Status restore_mlx_names(const ModelIndex& model, List<ModelTensor>& tensors, std::string& config);

}  // namespace wasmquant
