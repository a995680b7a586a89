// What a forward pass reads, in order: the embedding, then each block's tensors, then the final norm and the head.
// Quantized checkpoints are decoded on the way; the pass itself sees float32.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/list.h"
#include "core/result.h"
#include "model/architecture.h"
#include "model/pass_slots.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/task/task.h"

namespace wasmquant {

struct ForwardTensor {
  uint32_t slot = 0;
  TensorTask task;
  uint64_t bytes = 0;        // stored
  bool is_streamed = false;  // run on every portion after each tile, and not kept
};

/// Step 0 is the embedding, step n the block n - 1, the last one norm and head.
struct ForwardStep {
  std::string name;
  List<ForwardTensor> tensors;
  uint64_t float_bytes = 0;  // what is kept in memory
};

struct ForwardPlan {
  model::Architecture architecture;
  std::string config;  // that it was read from: the text that was given, or what GGUF's metadata say
  List<ForwardStep> steps;
};

/// Whether a pass only runs: then GGUF models go, too, with the rows of q_proj and k_proj and the norms as transformers
/// has them, and by their metadata where there is no config.json.
enum class ForwardUse : uint8_t { run, calibrate };

/// `config_text`: config.json. Errors: of model::read_architecture; tensor-missing, shape-mismatch, dtype-unsupported
/// naming the tensor; config-invalid when there is no config.json; not-implemented for ONNX, for GGUF that is to be
/// calibrated, and where GGUF's metadata say less than a config.json.
Result<ForwardPlan> plan_forward(const ModelIndex& model, std::string_view config_text, const TileBytes& tile_bytes,
                                 ForwardUse use = ForwardUse::calibrate);

/// {"config", "family", "vocabulary", "maxPositions", "hidden", "steps": [{"name", "floatBytes", "tensors": [{"slot",
/// "name", "task", "tiles", "bytes", "streamed"}]}], "tokenBytes", "calibrationBytes", "workingBytes" for sequences of
/// `length`}; task: number of packed_tasks.
json::Value forward_plan_json(const ForwardPlan& plan, size_t length);
/// The tasks of all steps, packed in their order.
std::string packed_tasks(const ForwardPlan& plan);

}  // namespace wasmquant
