// Static inputs and outputs of layers: quantized to 8 bits and dequantized with calibrated scales and zero points.
//   x -> QuantizeLinear -> x_quantized -> DequantizeLinear -> x_dequantized -> node -> y_float -> the same -> y
#pragma once
#include <span>
#include <string>

#include "onnx_graph/onnx_editor.h"
#include "onnx_graph/onnx_rewrite.h"

namespace wasmquant::conversion {

/// Inserts such pairs around the nodes that multiply or convolve with the chosen weights. Nodes of one graph that
/// quantize a value equally share the pair. Nothing else may replace these nodes.
void quantize_values(OnnxEditor& editor, std::span<const OnnxChoice> choices);

}  // namespace wasmquant::conversion
