// A quantized model as its float model: weights that are stored as codes become float initializers, whose values are
// decoded when they are read, and the operators on codes become those of floats.
//   DequantizeLinear (W), Mul (Cast (W) - Cast (Z), S)                    W
//   DequantizeLinear (QuantizeLinear (W)), W a float constant             W
//   MatMulNBits (A, W)                                                    MatMul (A, Transpose (W))
//   DynamicQuantizeLinear (A), MatMulInteger or ConvInteger, Cast, Mul    MatMul or Conv (A, W)
//   DynamicQuantizeMatMul (A, W), DynamicQuantizeLSTM (X, W, R)           MatMul (A, W), LSTM (X, W, R)
//   QLinearMatMul, QLinearConv, QGemm                                     the float operator between DequantizeLinear and
//                                                                         QuantizeLinear of its input and output
//   GatherBlockQuantized, and Gather of codes as it is written here or    Gather (W, indices)
//   before one of these operators or DequantizeLinear
// Codes of inputs and outputs stay, and so do weights whose layout has no decoder, with the nodes that read them.
// Source: quantization/operators of onnxruntime, ContribOperators.md; onnx_graph/onnx_operators.cpp, onnx_gather.cpp.
#pragma once
#include "pipeline/stored/float_graph.h"

namespace wasmquant::conversion {

/// `source` must outlive the result. Errors: format-unsupported.
Result<DequantizedModel> dequantized(const onnx::Model& source);

}  // namespace wasmquant::conversion
