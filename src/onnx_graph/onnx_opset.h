// Raises the version of ONNX's operators. Newer versions mostly turn attributes into inputs (axes of Squeeze, limits of
// Clip). Such nodes are updated, and so are Softmax, which flattened its input to a matrix before version 13, Split into
// equal parts, which states their number from version 18 on, and Upsample and Resize of versions before 11.
#pragma once
#include <string>

#include "core/diagnostic.h"
#include "core/list.h"
#include "core/result.h"
#include "formats/onnx/onnx.h"
#include "onnx_graph/onnx_editor.h"

namespace wasmquant::conversion {

/// How a node is converted.
enum class NodeChange : uint8_t {
  input,    // an attribute becomes an input
  flatten,  // the node works on a matrix
  count,    // Split: num_outputs
  floor,    // Resize: a third input between its two, coordinates asymmetric, nearest_mode floor
  ceil,     // the same with nearest_mode ceil
  both,     // Resize: a node with ceil for the scales below 1, one with floor for the others
};

/// One change of a node.
struct AttributeInput {
  NodeChange change = NodeChange::input;
  uint32_t node = 0;
  uint32_t attribute = 0;  // index into the node's; kNone unless it becomes an input
  uint32_t input = 0;      // which of its inputs
  bool is_real = false;    // a float32 scalar; else int64 [count]
  std::string values;      // little-endian; of `both` the float32 scales
};

/// The changes after which every node means the same in version `opset`, by ascending node. Errors: format-unsupported,
/// naming a node that cannot be converted.
Result<List<AttributeInput>> opset_changes(const onnx::Model& model, uint32_t opset);

/// Applies those and raises the model's versions. Errors: those of opset_changes. Diagnostics: opset-raised.
Status raise_opset(OnnxEditor& editor, uint32_t opset, DiagnosticList& diagnostics);

/// The model field with the version of a domain's operators.
Pieces opset_import(OnnxEditor& editor, std::string_view domain, uint64_t version);

}  // namespace wasmquant::conversion
