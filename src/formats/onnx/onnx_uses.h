// Names of an ONNX model: what defines them, which graphs see them, and which nodes use its tensors.
#pragma once
#include "formats/onnx/onnx.h"

namespace wasmquant::onnx {

/// A name that a graph defines: an input, a tensor, or an output of a node. Graphs inside see it too.
struct Definition {
  std::string_view name;
  uint32_t graph = 0;
  uint32_t tensor = kNone;
  Range input;  // the field of an input, with its tag
  bool is_input() const noexcept { return input.bytes() > 0; }
};
/// Fills the consumers of the model's tensors, and its names. Errors: tensor-duplicate where a name is defined twice
/// in a graph or again in a graph inside it.
Status find_uses(Model& model, const List<Definition>& definitions);

/// Whether nodes of this type quantize, dequantize or work on codes.
bool is_quantized_operator(std::string_view domain, std::string_view op_type) noexcept;

}  // namespace wasmquant::onnx
