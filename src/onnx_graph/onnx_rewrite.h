// An ONNX model with some of its weights quantized, as a list of segments, determined before any weight is read. The
// rest is copied byte for byte.
//
// Use by a plan:
//   1. Skeleton::need() and feed() until complete, read_model(); external files: check_external() of each location
//   2. list_weights(); for each weight and its spec onnx_form_of(), onnx_layout()
//   3. rewrite_onnx(): the output files as segments
//   4. for each chosen weight, tile by tile: read the rows of its layout (source_transposed: the columns of the file's
//      tensor, transposed), quantize, pack_tile() into the bytes of its components, whose offsets the segments give.
//      A weight whose encoding is `varints` is read whole and passed to decode_varints().
//   5. copy the rest as the segments say
//
// DequantizeLinear replaces the initializer or Constant under its name, so that nodes are unchanged, or the last node
// between the weight and its layer. The other forms replace nodes; if some consumers of a weight cannot be replaced, the
// original weight is kept for them. Nodes between a weight and its consumers (onnx::View) go when nothing reads them.
// New names are the weight's with a suffix, and underscores appended while that is taken.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "checkpoint/activation_scales.h"
#include "checkpoint/onnx_layout.h"
#include "core/diagnostic.h"
#include "formats/onnx/onnx.h"
#include "onnx_graph/onnx_nodes.h"
#include "onnx_graph/onnx_weights.h"

namespace wasmquant::conversion {

/// Smaller tensors always stay in the model: readers expect shapes and scalars there.
inline constexpr uint64_t kLeastExternalBytes = 1024;

/// Static quantization of a value to 8 bits: one scale and zero point per tensor.
struct StaticScale {
  float scale = 1;
  int16_t zero_point = 0;
  bool is_signed = false;  // int8, else uint8
  bool operator==(const StaticScale&) const = default;
};

/// One weight to quantize. Its layout and weight must outlive the rewrite.
struct OnnxChoice {
  uint32_t tensor = 0;  // index into the model's tensors
  OnnxForm form = OnnxForm::dequantize_linear;
  const WeightLayout* layout = nullptr;
  const OnnxModelWeight* weight = nullptr;   // the tensor's; null if is_float
  std::optional<StaticScale> input, output;  // of nodes that multiply or convolve with it; dequantize_linear only
  bool is_float = false;                     // float values under the same name: the layout has one component
  OnnxReaders readers = OnnxReaders::all;    // of the quantized weight; DequantizeLinear serves all
};

/// The element type of the layout's scales, and of the values that they give.
uint32_t float_type_of(const WeightLayout& layout) noexcept;

struct OnnxNorm;

/// Options of a rewrite.
struct OnnxOptions {
  /// Name of the file for external data next to the model. transformers.js expects "<model's file>_data".
  std::string data_file;
  /// If the model would exceed this, tensors of 1 KiB and more become external data. Readers reject files of 2 GiB.
  uint64_t largest_model = uint64_t{3} << 29;
  /// Attribute of MatMulNBits, see its documentation; 0 omits it: full precision.
  uint32_t accuracy_level = 0;
  /// Raise ONNX's operators to at least this version, if possible.
  uint32_t least_opset = 0;
  /// Entries of metadata_props, key and value; they replace the model's with the same key.
  List<std::pair<std::string, std::string>> properties;
  /// Norms to fold; the model is then that of without_norms(). Their weights are among the choices.
  const List<OnnxNorm>* norms = nullptr;
};

/// One output file.
struct OnnxFile {
  List<Segment> segments;
  uint64_t bytes = 0;
};

/// The result of rewrite_onnx().
struct OnnxRewrite {
  std::string literals;
  OnnxFile model;
  OnnxFile data;          // empty: no external data
  uint32_t opset = 0;     // of ONNX's own operators
  uint32_t replaced = 0;  // nodes, including those converted to a newer operator version
  List<uint32_t> kept;    // tensors of choices that are also in the model as they were
};

/// `choices` by ascending tensor, each with a node that supports its form (onnx_form_of). Errors: format-unsupported,
/// if the operators' version cannot be raised or the graph by itself is too large; argument-invalid. Diagnostics:
/// opset-raised, weight-kept-twice (some nodes still need the original weight).
Result<OnnxRewrite> rewrite_onnx(const onnx::Model& model, std::span<const OnnxChoice> choices,
                                 const OnnxOptions& options, DiagnosticList& diagnostics);

}  // namespace wasmquant::conversion
