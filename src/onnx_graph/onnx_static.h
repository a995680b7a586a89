// Static inputs and outputs of layers: the value becomes codes of 8 bits and a float again, with the scale and the zero
// point that calibration found.
//   x -> QuantizeLinear -> x_quantized -> DequantizeLinear -> x_dequantized -> node -> y_float -> the same -> y
#pragma once
#include <span>
#include <string>

#include "onnx_graph/onnx_editor.h"
#include "onnx_graph/onnx_rewrite.h"

namespace wasmquant::conversion {

/// Puts such pairs around the nodes that multiply or convolve with the chosen weights. Nodes of one graph that quantize
/// a value alike share the pair. These nodes are replaced, so no one else may do it.
void quantize_values(OnnxEditor& editor, std::span<const OnnxChoice> choices);

}  // namespace wasmquant::conversion
