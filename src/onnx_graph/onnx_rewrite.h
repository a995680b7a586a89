// An ONNX model with some of its weights quantized, as a list of pieces. Fixed before any weight is read; what is not
// touched is copied byte for byte.
//
// How a plan uses it:
//   1. Skeleton::need() and feed() until complete, read_model(); external files: check_external() of each location
//   2. list_weights(); for each weight and its spec onnx_form_of(), onnx_layout()
//   3. rewrite_onnx(): the output files as segments
//   4. for each chosen weight, tile by tile: read the rows of its layout (source_transposed: the columns of what the
//      file has, transposed), quantize, pack_tile() into the slices of its components, whose places the segments say.
//      A weight whose encoding is `varints` is read whole and goes through decode_varints().
//   5. everything else is copied as the segments say
//
// DequantizeLinear takes the place of the initializer or Constant, under its name, so that nodes stay as they are. The
// other forms replace nodes; where a weight has uses that cannot be replaced, it stays beside them as it was.
// New names are the weight's with a suffix, and underscores after it where that is taken.
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

namespace wasmquant::conversion {

/// Smaller tensors stay in the model, whatever is external: readers want shapes and scalars there.
inline constexpr uint64_t kLeastExternalBytes = 1024;

/// What brings a value to codes of 8 bits: one scale and zero point a tensor.
struct StaticScale {
  float scale = 1;
  int16_t zero_point = 0;
  bool is_signed = false;  // int8, else uint8
  bool operator==(const StaticScale&) const = default;
};

/// One weight to quantize. Its layout must outlive the rewriting.
struct OnnxChoice {
  uint32_t tensor = 0;  // index into the model's tensors
  OnnxForm form = OnnxForm::dequantize_linear;
  const WeightLayout* layout = nullptr;
  std::optional<StaticScale> input, output;  // of the nodes that multiply or convolve with it; dequantize_linear alone
  bool is_float = false;                     // other values under the same name: the layout has one component
};

struct OnnxNorm;

struct OnnxOptions {
  /// Name of the file for external data, written beside the model. transformers.js wants "<model's file>_data".
  std::string data_file;
  /// Where the model would take more bytes than this, tensors of 1 KiB and more become external data. Readers refuse
  /// files of 2 GiB.
  uint64_t largest_model = uint64_t{3} << 29;
  /// Of MatMulNBits, as its documentation says; 0 leaves it out: full precision.
  uint32_t accuracy_level = 0;
  /// Version of ONNX's own operators that the model is raised to at least, if it can be.
  uint32_t least_opset = 0;
  /// Entries of metadata_props, key and value; the model's own with the same key go.
  List<std::pair<std::string, std::string>> properties;
  /// Norms to fold; the model is then that of without_norms(). Their weights are among the choices.
  const List<OnnxNorm>* norms = nullptr;
};

struct OnnxFile {
  List<Segment> segments;
  uint64_t bytes = 0;
};

struct OnnxRewrite {
  std::string literals;
  OnnxFile model;
  OnnxFile data;          // empty: no external data
  uint32_t opset = 0;     // of ONNX's own operators
  uint32_t replaced = 0;  // nodes, those that were brought to a newer version of the operators among them
};

/// `choices` by rising tensor, each with a node that takes its form (onnx_form_of). Errors: format-unsupported, when
/// the operators' version cannot be raised, or the graph alone is too large; argument-invalid.
/// Diagnostics: opset-raised, weight-kept-twice (some nodes still need the weight as it was).
Result<OnnxRewrite> rewrite_onnx(const onnx::Model& model, std::span<const OnnxChoice> choices,
                                 const OnnxOptions& options, DiagnosticList& diagnostics);

}  // namespace wasmquant::conversion
