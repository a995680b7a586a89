// Names of an ONNX model: definitions, scopes, and the nodes that use its tensors.
#pragma once
#include "formats/onnx/onnx.h"

namespace wasmquant::onnx {

/// A name defined in a graph and visible in its subgraphs: an input, a tensor, or a node output.
struct Definition {
  std::string_view name;
  uint32_t graph = 0;
  uint32_t tensor = kNone;
  Range input;            // the field of an input, with its tag
  uint32_t node = kNone;  // whose output it is
  bool is_input() const noexcept { return input.bytes() > 0; }
};
/// Fills the tensors' consumers and views, and the model's names. Errors: tensor-duplicate if a graph or subgraph redefines one.
Status find_uses(Model& model, const List<Definition>& definitions);

/// Whether nodes of this type quantize, dequantize or compute on codes.
bool is_quantized_operator(std::string_view domain, std::string_view op_type) noexcept;

}  // namespace wasmquant::onnx
