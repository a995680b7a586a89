// Which tensors of an ONNX model are weights of layers, the names of those layers, and the supported quantized forms.
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
  bool is_input_major = false;  // OnnxWeight::is_input_major
  const char* kept = nullptr;   // why it cannot be quantized, a sentence; null: it can
};
/// The weights of a model, by ascending tensor.
List<OnnxModelWeight> list_weights(const onnx::Model& model);

/// How MatMul, Gemm, Conv and Gather read quantized weights.
enum class OnnxStyle : uint8_t {
  weight_only,        // MatMulNBits and GatherBlockQuantized where the spec fits them, else DequantizeLinear
  dequantize_linear,  // DequantizeLinear everywhere
  dynamic,            // DynamicQuantizeLinear with MatMulInteger or ConvInteger; rejects weights of other nodes
};
/// The form for a weight under `spec`. At least one node reads it. Errors: format-unsupported.
Result<OnnxForm> onnx_form_of(const onnx::Model& model, const OnnxModelWeight& weight, const QuantizationSpec& spec,
                              OnnxStyle style);

/// Whether this node, with its attributes and other inputs, can be replaced by the form's operators.
bool takes_form(const onnx::Model& model, const onnx::Consumer& consumer, OnnxForm form) noexcept;

/// Whether this node multiplies or convolves with the weight, and its input and output can be quantized separately.
bool takes_static(const onnx::Model& model, const onnx::Consumer& consumer) noexcept;

/// The input of onnx_layout(). Its name is the tensor's.
OnnxWeight describe(const onnx::Model& model, const OnnxModelWeight& weight);

}  // namespace wasmquant::conversion
