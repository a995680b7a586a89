// The reading order of a forward pass: embedding, blocks, final norm and head. Quantized checkpoints become float32.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/json.h"
#include "core/list.h"
#include "core/result.h"
#include "model/config/architecture.h"
#include "model/pass_slots.h"
#include "pipeline/forward/forward_use.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// A tensor of a step. `slot`: its place in the block, or one of pass_slots.h.
struct ForwardTensor {
  uint32_t slot = 0;
  TensorTask task;
  uint64_t bytes = 0;        // stored
  bool is_streamed = false;  // run on every portion after each tile, and not kept
  std::string name;          // of an expert's: as if it had a tensor of its own; else empty
  std::string stack;         // the tensor that has those of all experts, where there is such a one
  bool alternates = false;   // rows of a gate and of its up, which are two tensors in GGUF
};

/// Step 0 is the embedding, step n is block n - 1, the last step is norm and head, which encoders have not.
struct ForwardStep {
  std::string name;
  List<ForwardTensor> tensors;
  uint64_t float_bytes = 0;  // kept in memory
  uint64_t kept_bytes = 0;   // where it is kept for the tokens of a sequence that is continued
};

/// `kept_bytes` of a step that is read again for each token.
inline constexpr uint64_t kNeverKept = uint64_t{1} << 52;

/// What a pass reads, and the architecture that it computes.
struct ForwardPlan {
  model::Architecture architecture;
  json::Array ends;  // eos_token_id: tokens behind which a text ends
  List<ForwardStep> steps;
};

/// Of GGUF models rows of q_proj and k_proj and the norms are converted to the transformers convention; metadata replaces a
/// missing config.json.
/// `config`: config.json, or null. Errors: those of model::read_architecture; tensor-missing, shape-mismatch,
/// dtype-unsupported naming the tensor; config-invalid if there is no config.json; not-implemented for ONNX,
/// and for GGUF metadata that is less complete than a config.json.
Result<ForwardPlan> plan_forward(const ModelIndex& model, const json::Value& config, const TileBytes& tile_bytes,
                                 ForwardUse use = ForwardUse::calibrate);

/// What GGUF files call a layer, and which expert of those that are stacked there it is, or -1; "" if they have none.
std::pair<std::string, int64_t> gguf_layer(const std::string& family, std::string_view layer);

/// {"ends", "family", "splits"?: each sequence is part of an input and of what is predicted, "vocabulary", "maxPositions", "hidden", "steps": [{"name", "floatBytes", "tensors": [{"slot",
/// "name", "stack"?, "part"?, "alternates"?, "task", "tiles", "bytes", "streamed"}]}], "tokenBytes", "stateBytes", "calibrationBytes",
/// "workingBytes"}; task: index
/// into packed_tasks; `longest`: tokens of the longest sequence.
json::Value forward_plan_json(const ForwardPlan& plan, size_t longest);
std::string packed_tasks(const ForwardPlan& plan);

}  // namespace wasmquant
