// Which tensors of an ONNX model are weights of layers, what those layers are called, and in which form a weight can be
// held.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/onnx_layout.h"
#include "config/spec/spec.h"
#include "core/list.h"
#include "core/result.h"
#include "formats/onnx/onnx.h"

namespace wasmquant::conversion {

/// A float tensor that a layer uses as its weight.
struct OnnxModelWeight {
  uint32_t tensor = 0;          // index into the model's tensors
  std::string layer;            // "model.layers.0.mlp.up_proj": by the tensor's name if that ends in ".weight", else by
                                // that of the first node that uses it ("/model/layers.0/mlp/up_proj/MatMul")
  const char* layer_type = "";  // PyTorch's class: Linear, Conv2d, ConvTranspose1d, Embedding, LSTM …
  bool swapped = false;         // OnnxWeight::swapped
  const char* kept = nullptr;   // why it must stay as it is, a sentence; null: it need not
};
List<OnnxModelWeight> list_weights(const onnx::Model& model);

/// How MatMul, Gemm, Conv and Gather work on quantized weights.
enum class OnnxStyle : uint8_t {
  weight_only,        // MatMulNBits and GatherBlockQuantized where the spec fits them, else DequantizeLinear
  dequantize_linear,  // DequantizeLinear throughout
  dynamic,            // DynamicQuantizeLinear with MatMulInteger or ConvInteger; weights of other nodes are refused
};
/// The form for a weight under `spec`. It always has a node that reads it. Errors: format-unsupported.
Result<OnnxForm> onnx_form_of(const onnx::Model& model, const OnnxModelWeight& weight, const QuantizationSpec& spec,
                              OnnxStyle style);

/// Whether this node can be replaced by the form's, as its attributes and other inputs are.
bool takes_form(const onnx::Model& model, const onnx::Consumer& consumer, OnnxForm form) noexcept;

/// Whether this node multiplies or convolves with the weight, and has what goes in and out quantized by itself.
bool takes_static(const onnx::Model& model, const onnx::Consumer& consumer) noexcept;

/// What onnx_layout() has to know. Its name is the tensor's.
OnnxWeight describe(const onnx::Model& model, const OnnxModelWeight& weight);

}  // namespace wasmquant::conversion
