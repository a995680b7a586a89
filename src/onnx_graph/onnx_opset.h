// Raising the version of ONNX's own operators. Most of what newer versions changed is where a number stands: what was
// an attribute is an input now (axes of Squeeze, limits of Clip). Such nodes are brought up to date, and so is Softmax,
// which worked on its input flattened to a matrix before version 13.
#pragma once
#include <string>

#include "core/diagnostic.h"
#include "core/list.h"
#include "core/result.h"
#include "formats/onnx/onnx.h"
#include "onnx_graph/onnx_editor.h"

namespace wasmquant::conversion {

/// An attribute that becomes an input.
struct AttributeInput {
  uint32_t node = 0;
  uint32_t attribute = 0;  // index into the node's; kNone: none does, but the node's input is to be flattened
  uint32_t input = 0;      // which of its inputs
  bool is_real = false;    // a float32 scalar; else int64 [count]
  std::string values;      // little-endian
};

/// What makes every node mean the same in version `opset` as it does in the model's own; by rising node. Errors:
/// format-unsupported, naming a node that cannot be brought there.
Result<List<AttributeInput>> opset_changes(const onnx::Model& model, uint32_t opset);

/// Makes those changes, and raises the versions of operators and format that the model states. Errors: those of
/// opset_changes. Diagnostics: opset-raised.
Status raise_opset(OnnxEditor& editor, uint32_t opset, DiagnosticList& diagnostics);

/// A field of the model that says which version of a domain's operators it uses.
Pieces opset_import(OnnxEditor& editor, std::string_view domain, uint64_t version);

}  // namespace wasmquant::conversion
