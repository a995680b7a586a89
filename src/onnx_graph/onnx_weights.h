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

/// A float tensor that a layer uses as its weight, as it is or through views (onnx::View).
struct OnnxModelWeight {
  uint32_t tensor = 0;          // index into the model's tensors
  uint32_t view = onnx::kNone;  // what the layer reads
  std::vector<uint64_t> shape;  // of that, in the order of the tensor's elements
  uint32_t data_type = 0;       // of that
  std::string layer;            // "model.layers.0.mlp.up_proj": by the tensor's name if that ends in ".weight", else by
                                // that of the first node that uses it ("/model/layers.0/mlp/up_proj/MatMul")
  std::string_view operator_type;  // of that node
  const char* layer_type = "";     // PyTorch's class: Linear, Conv2d, ConvTranspose1d, Embedding, LSTM …
  bool is_input_major = false;     // OnnxWeight::is_input_major
  bool is_batch = false;           // OnnxWeight::is_batch
  bool is_input = false;           // of the graph, which a caller may set; the tensor is its default
  std::string embedding;           // the layer of a Gather that reads it, too; then this layer is tied to it
  const char* kept = nullptr;      // why it cannot be quantized, a sentence; null: it can
};
/// The weights of a model, by ascending tensor.
List<OnnxModelWeight> list_weights(const onnx::Model& model);

/// Why a tensor is not among them, a sentence.
std::string reason_no_weight(const onnx::Model& model, const onnx::Tensor& tensor);

/// The shape (in the order of the tensor's elements) and data type that a consumer sees.
const std::vector<uint64_t>& shape_seen(const onnx::Model& model, const onnx::Tensor& tensor,
                                        const onnx::Consumer& consumer) noexcept;
uint32_t type_seen(const onnx::Model& model, const onnx::Tensor& tensor, const onnx::Consumer& consumer) noexcept;

/// Which nodes read the quantized weight; the others keep reading the float one.
enum class OnnxReaders : uint8_t { all, products, gathers };

/// How MatMul, Gemm, Conv and Gather read quantized weights.
enum class OnnxStyle : uint8_t {
  weight_only,        // MatMulNBits, Gather of codes, Cast and Mul where the spec fits them, else DequantizeLinear
  n_bits,             // the same, with MatMulNBits for all products: Cast and Mul compute in float only
  dequantize_linear,  // DequantizeLinear everywhere
  dynamic,            // DynamicQuantizeLinear with MatMulInteger or ConvInteger; rejects weights of other nodes
};
/// The form for a weight under `spec`. At least one node reads it. With one scale per channel or tensor all nodes do: a
/// weight that some of them need dequantized is dequantized for all. Errors: format-unsupported.
Result<OnnxForm> onnx_form_of(const onnx::Model& model, const OnnxModelWeight& weight, const QuantizationSpec& spec,
                              OnnxStyle style, OnnxReaders readers = OnnxReaders::all);

/// Whether this node, with its attributes and other inputs, can be replaced by the form's operators. A Gather of rows
/// takes the codes of MatMulNBits, too.
bool takes_form(const onnx::Model& model, const OnnxModelWeight& weight, const onnx::Consumer& consumer, OnnxForm form,
                OnnxReaders readers) noexcept;

/// The view whose node DequantizeLinear replaces: the layer's if nothing else reads the tensor, else, and for batches that
/// a Transpose exchanges, the first one with the layer's shape; kNone: the tensor itself.
uint32_t dequantized_view(const onnx::Model& model, const OnnxModelWeight& weight) noexcept;

/// Whether this node multiplies or convolves with the weight, and its input and output can be quantized separately.
bool takes_static(const onnx::Model& model, const onnx::Consumer& consumer) noexcept;

/// The input of onnx_layout() for this form. Its name is the tensor's.
OnnxWeight describe(const onnx::Model& model, const OnnxModelWeight& weight, OnnxForm form);

}  // namespace wasmquant::conversion
