// The whole outcome of a run, fixed before any weight is read: which tensor gets which spec and why, what every output
// file contains and where, and the tasks that fill it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "config/resolve.h"
#include "core/list.h"
#include "pipeline/activation_calibration.h"
#include "pipeline/model_index.h"
#include "pipeline/task.h"

namespace wasmquant {

struct PlanOptions {
  std::string format;  // empty: gguf for GGUF models and configs, else compressed-tensors
  std::string name;    // of the model, for file names and metadata that have one; empty: not known
  TileBytes tile_bytes;
  bool calibrates = false;  // what the plan asks of calibration will come, or has
  json::Value activations;  // "found" of ActivationCalibration::finish, then
};

struct PlannedTensor {
  uint32_t tensor = 0;  // index into the model's tensors
  WeightDescription weight;
  Reason reason;
  TensorTask task;
  uint64_t bytes_after = 0;
  List<KnownTensor> activations;  // static scales of the layer's inputs and outputs

  const List<Component>& outputs() const noexcept { return task.layout.components; }
};

/// Bytes of a file that are known before any weight is read.
struct KnownBytes {
  uint64_t offset = 0;
  std::string bytes;
};

struct PlannedFile {
  std::string name;
  std::string prefix;      // header, and the tensors whose values follow from shapes
  uint64_t bytes = 0;      // in all
  List<KnownBytes> known;  // among the tensors
};

struct Plan {
  std::string format;
  List<PlannedTensor> tensors;  // in the model's order
  List<PlannedFile> files;
  List<ActivationRequest> requests;  // what calibration has to find for it
  std::string shard_map;             // text of model.safetensors.index.json; empty for a single file
  json::Value quantization_config;
  uint64_t bytes_before = 0, bytes_after = 0;
  uint64_t quantized_elements = 0, quantized_bytes = 0, quantized_count = 0;
};

/// Errors: config-invalid, format-unsupported (every layer that the format cannot hold is in the diagnostics),
/// file-invalid. `diagnostics` is filled either way.
Result<Plan> make_plan(const ModelIndex& model, std::string_view config, const PlanOptions& options,
                       List<Diagnostic>& diagnostics);

}  // namespace wasmquant
