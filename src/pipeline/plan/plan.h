// The whole outcome of a run, fixed before any weight is read: which tensor gets which spec and why, what every output
// file contains and where, and the tasks that fill it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/onnx_layout.h"
#include "config/resolve.h"
#include "core/list.h"
#include "pipeline/calibration/activation_calibration.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/task/task.h"

namespace wasmquant {

/// Of ONNX outputs.
struct OnnxPlanOptions {
  bool qdq = false;             // DequantizeLinear throughout, no MatMulNBits and other operators on codes
  uint32_t accuracy_level = 0;  // of MatMulNBits, 0 to 4; 0: not said
  bool external_data = false;   // also where the model would not be too large
  std::string file;             // name of the output file; empty: made of the model's name and what becomes of it
  bool folder = false;          // files go to a folder laid out as transformers.js has it: onnx/<name>_<dtype>.onnx
};

/// Of GGUF outputs.
struct GgufPlanOptions {
  std::span<const uint8_t> imatrix;  // a whole file (formats/gguf/imatrix.h), for the time of planning; empty: none
  std::string imatrix_name;          // what it is called, for the metadata; may be empty
  uint64_t shard_bytes = 0;          // of tensor data in a file, about; 0: one file
};

/// What written files say of who wrote them: a key of their metadata (safetensors __metadata__, GGUF, metadata_props of
/// ONNX) whose value is PlanOptions::version.
inline constexpr std::string_view kVersionKey = "wasmquant.version";

struct PlanOptions {
  std::string version;           // of the library; empty: files do not say
  std::string format;            // empty: that of GGUF and ONNX models, gguf for recipes, else compressed-tensors
  std::string name;              // of the model, for file names and metadata that have one; empty: not known
  bool include_towers = false;   // default exclusions leave towers and projectors in
  bool include_experts = false;  // experts are quantized also where transformers cannot load them
  TileBytes tile_bytes;
  OnnxPlanOptions onnx;
  GgufPlanOptions gguf;
  bool calibrates = false;             // what the plan asks of calibration will come, or has
  json::Value activations;             // "found" of ActivationCalibration::finish, then
  std::span<const uint8_t> constants;  // what Plan::constants asked for, one after another; empty: not read yet
};

struct PlannedTensor {
  uint32_t tensor = 0;  // index into the model's tensors
  std::string name;     // where it is not that of its source: another tensor made of the same
  WeightDescription weight;
  Reason reason;
  TensorTask task;
  std::optional<OnnxForm> onnx_form;  // of weights that ONNX holds in codes
  bool is_left = false;               // its values go over as they are, decoded or rearranged
  uint64_t bytes_after = 0;
  List<KnownTensor> activations;  // static scales of the layer's inputs and outputs

  const List<Component>& outputs() const noexcept { return task.layout.components; }
};

/// Bytes of a file that are known, at `offset` of the file and `begin` of PlannedFile::prefix.
struct Literal {
  uint64_t offset = 0, begin = 0, bytes = 0;
};

struct PlannedFile {
  std::string name;
  std::string prefix;      // header, tensors whose values follow from shapes, then those that calibration found
  uint64_t bytes = 0;      // in all
  List<Literal> literals;  // where parts of the prefix stand, by offset; empty: it begins the file

  /// Appends to the prefix what stands at `offset` of the file, behind the last literal.
  void add_literal(uint64_t offset, std::string_view text);
};

/// Bytes of a source.
struct SourceRange {
  Location at;
  uint64_t bytes = 0;
};

struct Plan {
  std::string format;
  std::shared_ptr<const ModelIndex> model;  // what `tensors` are of where that is not the model that was given
  List<PlannedTensor> tensors;              // in the model's order
  List<PlannedFile> files;
  List<ActivationRequest> requests;  // what calibration has to find for it
  List<SourceRange> constants;       // what has to be read and given before it can be run
  List<TensorTask> copies;           // ranges of the sources that go over, besides tensors
  /// What is to be done, in the order of the output: indexes into tensors, and after those into copies.
  List<uint32_t> work;
  std::string shard_map;  // text of model.safetensors.index.json; empty for a single file
  json::Value quantization_config;
  json::Value config_changes;    // of config.json besides: an object, or null
  std::string external_data_of;  // name of the file whose tensors lie in another one; empty: there is none
  uint64_t bytes_before = 0, bytes_after = 0;
  uint64_t quantized_elements = 0, quantized_bytes = 0, quantized_count = 0;

  size_t task_count() const noexcept { return work.size(); }
  /// What task number `i` works on, as in `work`.
  size_t work_of(size_t i) const noexcept { return work[i]; }
  const TensorTask& task_of(size_t item) const noexcept {
    return item < tensors.size() ? tensors[item].task : copies[item - tensors.size()];
  }
};

/// Errors: config-invalid, format-unsupported (every layer that the format cannot hold is in the diagnostics),
/// file-invalid. `diagnostics` is filled either way.
Result<Plan> make_plan(const ModelIndex& model, std::string_view config, const PlanOptions& options,
                       List<Diagnostic>& diagnostics);

}  // namespace wasmquant
