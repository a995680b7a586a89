#include "onnx_graph/onnx_weights.h"

#include <algorithm>

#include "core/message.h"

namespace wasmquant::conversion {
namespace {

using onnx::Consumer;
using onnx::Node;
using onnx::Tensor;
using onnx::Use;

constexpr std::string_view kWeightSuffix = ".weight";

// "/model/layers.0/mlp/up_proj/MatMul" -> "model.layers.0.mlp.up_proj"
std::string layer_of_node(std::string_view name) {
  std::string layer(name.substr(0, name.rfind('/')));
  std::replace(layer.begin(), layer.end(), '/', '.');
  return layer.starts_with('.') ? layer.substr(1) : layer;
}

std::string layer_of(const onnx::Model& model, const Tensor& tensor, const Consumer& first) {
  if (tensor.name.ends_with(kWeightSuffix))
    return std::string(tensor.name.substr(0, tensor.name.size() - kWeightSuffix.size()));
  const std::string_view node = model.nodes[first.node].name;
  if (node.size() > 1 && node.rfind('/') != node.npos && node.rfind('/') > 0) return layer_of_node(node);
  return std::string(tensor.name);
}

const char* layer_type_of(const Node& node, Use use, size_t rank) noexcept {
  constexpr const char* kConv[] = {"Conv1d", "Conv2d", "Conv3d"};
  constexpr const char* kConvTranspose[] = {"ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"};
  switch (use) {
    case Use::mat_mul:
    case Use::gemm:
      return "Linear";
    case Use::conv:
      return rank >= 3 && rank <= 5 ? kConv[rank - 3] : "Conv";
    case Use::conv_transpose:
      return rank >= 3 && rank <= 5 ? kConvTranspose[rank - 3] : "ConvTranspose";
    case Use::gather:
      return "Embedding";
    case Use::recurrent:
      return node.op_type == "LSTM" ? "LSTM" : node.op_type == "GRU" ? "GRU" : "RNN";
    default:
      return "";
  }
}

int64_t integer_of(const Node& node, std::string_view attribute) noexcept {
  const onnx::Attribute* found = node.find(attribute);
  return found == nullptr ? 0 : found->integer;
}

// Whether the attribute multiplies by one: Gemm's default is 1.
bool is_one(const Node& node, std::string_view attribute) noexcept {
  const onnx::Attribute* found = node.find(attribute);
  return found == nullptr || found->real == 1.0f;
}

bool reads_input_major(const Node& node, Use use) noexcept {
  if (use == Use::gemm) return integer_of(node, "transB") == 0;
  return use == Use::mat_mul || use == Use::conv_transpose;
}

const char* reason_to_keep(const onnx::Model& model, const Tensor& tensor, bool is_input_major) {
  if (tensor.encoding == onnx::Encoding::none) return "it has no elements";
  if (tensor.encoding == onnx::Encoding::scattered) return "its values are spread over many fields of the file";
  if (tensor.is_output) return "its graph gives it out";
  // Before version 4 of the format, initializers also had to be inputs.
  if (tensor.input.bytes() > 0 && model.ir_version >= 4) return "it is an input of the graph, which a caller may set";
  for (const Consumer& consumer : tensor.consumers) {
    if (consumer.use == Use::quantized) return "the model quantizes it itself";
    if (consumer.use == Use::mat_mul && tensor.shape.size() != 2) return "MatMul takes it as a batch of matrices";
    if (consumer.use != Use::other && reads_input_major(model.nodes[consumer.node], consumer.use) != is_input_major)
      return "nodes use it both as it is and transposed";
  }
  return nullptr;
}

}  // namespace

List<OnnxModelWeight> list_weights(const onnx::Model& model) {
  List<OnnxModelWeight> weights;
  for (uint32_t t = 0; t < model.tensors.size(); ++t) {
    const Tensor& tensor = model.tensors[t];
    if (!onnx::weight_dtype_of(tensor.data_type) || tensor.shape.size() < 2 || tensor.name.empty()) continue;
    const Consumer* first = nullptr;  // a use other than Gather takes precedence
    for (const Consumer& consumer : tensor.consumers)
      if (consumer.use != Use::other && consumer.use != Use::quantized &&
          (first == nullptr || (first->use == Use::gather && consumer.use != Use::gather)))
        first = &consumer;
    if (first == nullptr) continue;
    const Node& node = model.nodes[first->node];
    OnnxModelWeight& weight = weights.emplace_back();
    weight.tensor = t;
    weight.layer = layer_of(model, tensor, *first);
    weight.layer_type = layer_type_of(node, first->use, tensor.shape.size());
    weight.is_input_major = reads_input_major(node, first->use);
    weight.kept = reason_to_keep(model, tensor, weight.is_input_major);
  }
  return weights;
}

bool takes_form(const onnx::Model& model, const Consumer& consumer, OnnxForm form) noexcept {
  if (form == OnnxForm::dequantize_linear) return true;
  const Node& node = model.nodes[consumer.node];
  const bool is_whole = node.inputs.size() >= 2 && !node.inputs[0].empty() && !node.inputs[1].empty() &&
                        node.outputs.size() == 1 && !node.outputs[0].empty() && node.graphs.empty();
  if (!is_whole) return false;
  const bool is_plain_gemm =
      consumer.use == Use::gemm && integer_of(node, "transA") == 0 && is_one(node, "alpha") && is_one(node, "beta");
  switch (form) {
    case OnnxForm::dequantize_linear:
      break;
    case OnnxForm::mat_mul_n_bits:
      return consumer.use == Use::mat_mul || is_plain_gemm;
    case OnnxForm::gather_block_quantized:
      return consumer.use == Use::gather && integer_of(node, "axis") == 0;
    case OnnxForm::integer_operator:
      return consumer.use == Use::mat_mul || consumer.use == Use::conv || is_plain_gemm;
  }
  return true;
}

bool takes_static(const onnx::Model& model, const Consumer& consumer) noexcept {
  const Node& node = model.nodes[consumer.node];
  return onnx::is_product(consumer.use) && !node.inputs[0].empty() && node.outputs.size() == 1 &&
         !node.outputs[0].empty();
}

Result<OnnxForm> onnx_form_of(const onnx::Model& model, const OnnxModelWeight& weight, const QuantizationSpec& spec,
                              OnnxStyle style) {
  const Tensor& tensor = model.tensors[weight.tensor];
  if (weight.kept != nullptr) return error_at(ErrorCode::format_unsupported, tensor.name, "it stays: {}", weight.kept);
  const OnnxWeight described = describe(model, weight);
  const auto serves = [&](OnnxForm form) {
    for (const Consumer& consumer : tensor.consumers)
      if (takes_form(model, consumer, form)) return static_cast<bool>(onnx_layout(form, described, spec));
    return false;
  };
  if (style == OnnxStyle::dynamic) {
    for (const Consumer& consumer : tensor.consumers)
      if (takes_form(model, consumer, OnnxForm::integer_operator)) return OnnxForm::integer_operator;
    return error_at(ErrorCode::format_unsupported, tensor.name,
                    "{} has no integer operator that quantizes its input; weight-only forms support it",
                    model.nodes[tensor.consumers[0].node].op_type);
  }
  if (style == OnnxStyle::weight_only)
    for (const OnnxForm form : {OnnxForm::mat_mul_n_bits, OnnxForm::gather_block_quantized})
      if (serves(form)) return form;
  return OnnxForm::dequantize_linear;
}

OnnxWeight describe(const onnx::Model& model, const OnnxModelWeight& weight) {
  const Tensor& tensor = model.tensors[weight.tensor];
  return {std::string(tensor.name), tensor.shape, *onnx::weight_dtype_of(tensor.data_type), weight.is_input_major};
}

}  // namespace wasmquant::conversion
