// Which weights share the scale of the whole tensor. vLLM keeps one second scale of NVFP4 for the parts that
// it joins into one matrix, the largest of the stored ones, and leaves the scales of the groups below it as they are:
// if the stored ones differ, all other parts are read wrong.
// Source: vLLM's quantization/compressed_tensors/schemes/compressed_tensors_w4a4_nvfp4.py and
// quantization/quark/schemes/quark_nvfp4.py, process_weights_after_loading; the experts' layers next to them.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/diagnostic.h"
#include "core/list.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// The task of a layer's quantized weight.
struct LayerTask {
  std::string_view layer;
  TensorTask* task;
};

/// Names that layers of one module end with, a list a group (Config::shared_scale_groups).
using LayerGroups = List<List<std::string>>;

/// Sets TensorTask::joined of the weights that share a scale: `groups` of the config at the JSON pointer `where`, or without them the
/// parts that vLLM joins (vllm::joined_matrix), if they have a second scale. A config's groups are names that
/// layers of one module end with, as in AMD Quark, and also share the scales of weights quantized per tensor.
/// `joins`: whether runtimes of the format join layers. Returns what to say: a warning if parts that vLLM joins keep
/// scales of their own, a note if the config's groups share nothing. Errors: spec-invalid if the config's groups share
/// scales of which the weights' ranges do not say enough.
Result<std::optional<Diagnostic>> share_scales(const List<LayerTask>& weights, const std::optional<LayerGroups>& groups,
                                               std::string_view where, bool joins, const TileBytes& tile_bytes);

}  // namespace wasmquant
