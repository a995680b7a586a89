// The complete outcome of a run, fixed before any weight is read: each tensor's spec and its reason, the content and
// layout of every output file, and the tasks that fill them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/onnx_layout.h"
#include "config/resolve/resolve.h"
#include "core/list.h"
#include "pipeline/calibration/activation_calibration.h"
#include "pipeline/model_index/model_index.h"
#include "pipeline/task/task.h"

namespace wasmquant::config {
class GivenConfig;
}

namespace wasmquant {

/// Options of ONNX outputs.
struct OnnxPlanOptions {
  bool qdq = false;              // DequantizeLinear throughout, no MatMulNBits or other operators on codes
  uint32_t accuracy_level = 0;   // of MatMulNBits, 0 to 4; 0: unset
  bool external_data = false;    // also if the model would fit one file
  bool constant_inputs = false;  // weights that are defaults of graph inputs are quantized, and no inputs any more
  std::string file;              // output file name; empty: from the model's name and the quantization
  bool folder = false;           // files go to a folder laid out for transformers.js: onnx/<name>_<dtype>.onnx
  json::Value present;           // OnnxOutput::present
};

/// What config.json says of an ONNX output.
struct OnnxOutput {
  std::string file;             // empty: the output is not ONNX
  uint32_t data_files = 0;      // with its external data
  std::string_view cache_type;  // "float32" or "float16", of its inputs for cached keys and values; empty: it has none
  /// {files: {"model_q4.onnx": number of data files, …}, declared: their transformers.js_config}, of the ONNX files that
  /// are in the folder already; null: none.
  json::Value present;
};

/// Options of GGUF outputs.
struct GgufPlanOptions {
  std::span<const uint8_t> imatrix;  // a whole file (formats/gguf/imatrix.h), borrowed during planning; empty: none
  std::string imatrix_name;          // its name, for the metadata; may be empty
  uint64_t shard_bytes = 0;          // approximate tensor data per file; 0: one file, or `parts`
  uint32_t parts = 0;                // files of about one size, at most; 0: as shard_bytes says
  bool mmproj = false;               // the file for images, in place of the language model's
};

/// What is asked for the experts of a mixture in checkpoint formats.
enum class ExpertChoice : uint8_t {
  by_default,  // quantized where transformers reads them
  include,     // also where only vLLM does; where neither does, planning fails
  exclude      // they keep their dtype
};

struct PlanOptions {
  std::string version;          // library version; empty: not written
  std::string format;           // empty: the model's own for GGUF and ONNX, gguf for recipes, else compressed-tensors
  std::string name;             // model name for file names and metadata; empty: unknown
  bool include_towers = false;  // quantizes towers and projectors despite the default exclusions
  ExpertChoice experts = ExpertChoice::by_default;
  TileBytes tile_bytes;
  OnnxPlanOptions onnx;
  GgufPlanOptions gguf;
  bool calibrates = false;             // calibration will provide, or has provided, what the plan requests
  json::Value activations;             // "found" of ActivationCalibration::finish, if calibrated
  std::span<const uint8_t> constants;  // bytes of Plan::constants, concatenated; empty: not read yet
};

/// An output tensor: its source, its task, and the reason for its spec.
struct PlannedTensor {
  uint32_t tensor = 0;  // index into the model's tensors
  std::string name;     // if it differs from the source's: another tensor made from the same one
  WeightDescription weight;
  SharedValue<Reason> reason;
  TensorTask task;
  std::optional<OnnxForm> onnx_form;  // for weights that ONNX stores as codes
  bool is_left = false;               // values are kept, decoded or rearranged
  uint32_t stack = 0;                 // 1 + index into Plan::stacks; 0: a tensor of its own
  uint64_t bytes_after = 0;
  List<ConstantTensor> activations;  // static scales of the layer's inputs and outputs

  const List<Component>& outputs() const noexcept { return task.layout->components; }
  /// Adds to the sentence that gives the reason.
  void add_reason(std::string_view text) {
    reason.edit([&](Reason& own) { own.text += text; });
  }
};

/// Tensors of a plan that their file holds as one, along a first axis; their components follow each other.
struct OutputStack {
  std::string layer;       // of the one tensor
  List<uint32_t> tensors;  // of Plan::tensors, in the order of the axis; their components are equal
};

/// Known bytes at `offset` of the file and `begin` of PlannedFile::prefix.
struct Literal {
  uint64_t offset = 0, begin = 0, bytes = 0;
};

/// The header of a safetensors file. Its text, as long as all names, is written when it is asked for (header_text).
struct PlannedHeader {
  /// A stored tensor: a component of one of Plan::tensors, the first of its stack, or one of its activations.
  struct StoredTensor {
    uint32_t tensor = 0, number = 0;
    bool is_activation = false;
  };
  /// Where every kEntries-th entry begins.
  struct Mark {
    uint64_t text = 0, data = 0;  // offsets in the file, and after the header
  };
  static constexpr size_t kEntries = 4096;

  std::string head, tail;
  List<StoredTensor> entries;
  List<Mark> marks;
  uint64_t bytes = 0;

  size_t piece_count() const noexcept { return marks.size(); }
};

/// An output file: its known bytes and its size.
struct PlannedFile {
  std::string name;
  PlannedHeader header;  // of safetensors files
  std::string prefix;    // of other files the header; tensors whose values follow from shapes, or found by calibration
  uint64_t bytes = 0;    // total
  List<Literal> literals;  // places of parts of the prefix, by offset; empty: it starts the file

  /// Appends to the prefix the bytes at `offset` of the file, after the last literal.
  void add_literal(uint64_t offset, std::string_view text);
};

/// Bytes of a source.
struct SourceRange {
  Location at;
  uint64_t bytes = 0;
};

struct Plan {
  std::string format;
  std::shared_ptr<const ModelIndex> model;  // the model of `tensors`, if not the given one
  List<PlannedTensor> tensors;              // in the model's order
  List<OutputStack> stacks;
  List<PlannedFile> files;
  List<ActivationRequest> requests;  // what calibration must find
  List<SourceRange> constants;       // to be read and supplied before the plan can run
  List<TensorTask> copies;           // source ranges to copy apart from tensors
  /// Tasks in output order: indexes into tensors, then into copies.
  List<uint32_t> work;
  std::string shard_map;  // text of model.safetensors.index.json; empty for a single file
  json::Value quantization_config;
  json::Value config_changes;  // other changes to config.json: an object, or null
  std::string cast_dtype;      // of which all floats are, in the words of config.json; empty: unchanged
  OnnxOutput onnx;
  uint64_t tensor_bytes = 0;  // of all output tensors, without headers, graph and padding
  uint64_t quantized_elements = 0, quantized_bytes = 0, quantized_count = 0;

  /// Bytes of all files.
  uint64_t file_bytes() const noexcept {
    uint64_t bytes = 0;
    for (const PlannedFile& file : files) bytes += file.bytes;
    return bytes;
  }
  /// The layer under whose name the file has the tensor.
  const std::string& stored_layer(const PlannedTensor& planned) const noexcept {
    return planned.stack == 0 ? planned.weight.layer : stacks[planned.stack - 1].layer;
  }
  /// The first tensor of its stack; itself without one.
  uint32_t first_of_stack(uint32_t tensor) const noexcept {
    const uint32_t stack = tensors[tensor].stack;
    return stack == 0 ? tensor : stacks[stack - 1].tensors.front();
  }
  size_t task_count() const noexcept { return work.size(); }
  size_t work_of(size_t i) const noexcept { return work[i]; }
  const TensorTask& task_of(size_t item) const noexcept {
    return item < tensors.size() ? tensors[item].task : copies[item - tensors.size()];
  }
};

/// Errors: config-invalid, format-unsupported, file-invalid. `diagnostics` lists all problems.
Result<Plan> make_plan(const ModelIndex& model, config::GivenConfig& config, const PlanOptions& options,
                       List<Diagnostic>& diagnostics);
Result<Plan> make_plan(const ModelIndex& model, std::string_view config, const PlanOptions& options,
                       List<Diagnostic>& diagnostics);

}  // namespace wasmquant
