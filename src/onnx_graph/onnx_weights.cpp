// Follows views from a tensor to its consumers, names the layer, and says why a tensor is not a weight.
#include "onnx_graph/onnx_weights.h"

#include <algorithm>
#include <utility>

#include "core/message.h"
#include "runtimes/onnx_runtime/texts.h"

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
    case Use::fused_mat_mul:
    case Use::gemm:
    case Use::attention:
    case Use::einsum_in_out:
    case Use::einsum_out_in:
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

// Whether the attribute multiplies by one: Gemm's default is 1.
bool is_one(const Node& node, std::string_view attribute) noexcept {
  const onnx::Attribute* found = node.find(attribute);
  return found == nullptr || found->real == 1.0f;
}

bool reads_input_major(const onnx::Model& model, const Consumer& consumer) noexcept {
  const Node& node = model.nodes[consumer.node];
  const bool is_transposed = consumer.view != onnx::kNone && model.views[consumer.view].is_transposed;
  const bool has_option = consumer.use == Use::gemm || consumer.use == Use::fused_mat_mul;
  const bool is_input_major = has_option ? node.integer_or("transB", 0) == 0
                                         : consumer.use == Use::mat_mul || consumer.use == Use::conv_transpose ||
                                               consumer.use == Use::attention || consumer.use == Use::einsum_in_out;
  return is_input_major != is_transposed;
}

// Layers that read more than two dimensions as a batch of matrices.
bool reads_batches(Use use) noexcept {
  return use == Use::mat_mul || use == Use::fused_mat_mul || use == Use::einsum_in_out || use == Use::einsum_out_in;
}

// FusedMatMul may move the batch, too. Only batches of matrices may be exchanged in their last two dimensions.
bool is_layer(const onnx::Model& model, const Consumer& consumer) noexcept {
  if (consumer.use >= Use::quantized) return false;
  const onnx::View* const view = consumer.view == onnx::kNone ? nullptr : &model.views[consumer.view];
  if (view != nullptr && view->is_transposed && view->shape.size() > 2 && !reads_batches(consumer.use)) return false;
  return consumer.use != Use::fused_mat_mul || model.nodes[consumer.node].integer_or("transBatchB", 0) == 0;
}

// Of a table that is only looked up: scales of another table, for instance.
constexpr uint64_t kFewestValuesOfRow = 8;

const char* reason_to_keep(const onnx::Model& model, const Tensor& tensor, const OnnxModelWeight& weight) {
  if (tensor.encoding == onnx::Encoding::none) return "it has no elements";
  if (tensor.encoding == onnx::Encoding::scattered) return "its values are spread over many fields of the file";
  if (tensor.is_output) return "it is an output of its graph";
  if (weight.layer_type == std::string_view("Embedding") && weight.shape.back() < kFewestValuesOfRow)
    return "its rows have fewer than 8 values, too few for a scale";
  for (const Consumer& consumer : tensor.consumers) {
    if (consumer.use == Use::quantized) return "the model quantizes it itself";
    if (is_layer(model, consumer) && shape_seen(model, tensor, consumer) == weight.shape &&
        reads_input_major(model, consumer) != weight.is_input_major)
      return "nodes use it both as it is and transposed";
  }
  return nullptr;
}

// What reads the tensor as it is or through views, "FusedGemm of com.microsoft".
std::string reader_of(const onnx::Model& model, const Tensor& tensor) {
  const Consumer* reader = nullptr;
  for (const Consumer& consumer : tensor.consumers)
    if (reader == nullptr || (reader->use == Use::view && consumer.use != Use::view)) reader = &consumer;
  if (reader == nullptr) return {};
  const Node& node = model.nodes[reader->node];
  return node.domain.empty() ? std::string(node.op_type) : text_of("{} of {}", node.op_type, node.domain);
}

}  // namespace

const std::vector<uint64_t>& shape_seen(const onnx::Model& model, const Tensor& tensor,
                                        const Consumer& consumer) noexcept {
  return consumer.view == onnx::kNone ? tensor.shape : model.views[consumer.view].shape;
}

uint32_t type_seen(const onnx::Model& model, const Tensor& tensor, const Consumer& consumer) noexcept {
  return consumer.view == onnx::kNone ? tensor.data_type : model.views[consumer.view].data_type;
}

List<OnnxModelWeight> list_weights(const onnx::Model& model) {
  List<OnnxModelWeight> weights;
  for (uint32_t t = 0; t < model.tensors.size(); ++t) {
    const Tensor& tensor = model.tensors[t];
    if (!onnx::weight_dtype_of(tensor.data_type) || tensor.name.empty()) continue;
    const Consumer *first = nullptr, *gather = nullptr;  // a use other than Gather takes precedence
    for (const Consumer& consumer : tensor.consumers) {
      if (!is_layer(model, consumer) || shape_seen(model, tensor, consumer).size() < 2) continue;
      const Consumer*& place = consumer.use == Use::gather ? gather : first;
      if (place == nullptr) place = &consumer;
    }
    if (first == nullptr) first = std::exchange(gather, nullptr);
    if (first == nullptr) continue;
    OnnxModelWeight& weight = weights.emplace_back();
    weight.tensor = t;
    weight.view = first->view;
    weight.shape = shape_seen(model, tensor, *first);
    weight.data_type = type_seen(model, tensor, *first);
    weight.layer = layer_of(model, tensor, *first);
    weight.operator_type = model.nodes[first->node].op_type;
    weight.layer_type = layer_type_of(model.nodes[first->node], first->use, weight.shape.size());
    weight.is_input_major = reads_input_major(model, *first);
    weight.is_batch = weight.shape.size() > 2 && reads_batches(first->use);
    // Before version 4 of the format, initializers also had to be inputs.
    weight.is_input = tensor.input.bytes() > 0 && model.ir_version >= 4;
    if (gather != nullptr) weight.embedding = layer_of(model, tensor, *gather);
    weight.kept = reason_to_keep(model, tensor, weight);
  }
  return weights;
}

std::string reason_no_weight(const onnx::Model& model, const Tensor& tensor) {
  const std::string reader = reader_of(model, tensor);
  if (reader.empty()) return "no node reads it";
  if (tensor.data_type == static_cast<uint32_t>(onnx::DataType::float64))
    return text_of("{} reads it as float64; weights of float32, float16 and bfloat16 are quantized", reader);
  const bool is_zero_point = tensor.shape.size() < 2 && reader.find("uantizeLinear") != reader.npos;
  if (!onnx::weight_dtype_of(tensor.data_type) && !is_zero_point &&
      std::any_of(tensor.consumers.begin(), tensor.consumers.end(),
                  [](const Consumer& consumer) { return consumer.use == Use::quantized; }))
    return text_of("it is quantized already, in a way that is not decoded: {} reads it", reader);
  if (!onnx::weight_dtype_of(tensor.data_type)) return text_of("{} reads it, but it holds no floats", reader);
  if (tensor.shape.size() < 2) return text_of("{} reads it, but it is not a matrix", reader);
  if (reader == "Einsum")
    return text_of("{} reads it in an equation that is not a product with a matrix or a batch of matrices", reader);
  if (reader == "Squeeze" || reader == "Unsqueeze")
    return text_of("{} has no constant axes, or has them in an attribute, as before opset 13; {}", reader,
                   onnx_runtime::kFoldsConstants);
  if (reader == "Transpose" || reader == "Reshape" || reader == "Flatten")
    return text_of("{} reorders its elements, or gives them a shape that is not constant; {}", reader,
                   onnx_runtime::kFoldsConstants);
  return text_of("{} reads it, and constants of that operator are not quantized", reader);
}

bool takes_form(const onnx::Model& model, const OnnxModelWeight& weight, const Consumer& consumer, OnnxForm form,
                OnnxReaders readers) noexcept {
  if (gives_values(form)) return true;
  const Tensor& tensor = model.tensors[weight.tensor];
  const Node& node = model.nodes[consumer.node];
  const bool is_gather = consumer.use == Use::gather;
  const bool is_whole = node.inputs.size() >= 2 && !node.inputs[0].empty() && !node.inputs[1].empty() &&
                        node.outputs.size() == 1 && !node.outputs[0].empty() && node.graphs.empty();
  if (!is_whole || !is_layer(model, consumer) || shape_seen(model, tensor, consumer) != weight.shape ||
      type_seen(model, tensor, consumer) != weight.data_type ||
      readers == (is_gather ? OnnxReaders::products : OnnxReaders::gathers))
    return false;
  const bool is_plain_product = consumer.use == Use::mat_mul ||
                                (consumer.use == Use::gemm && node.integer_or("transA", 0) == 0 &&
                                 is_one(node, "alpha") && is_one(node, "beta")) ||
                                (consumer.use == Use::fused_mat_mul && node.integer_or("transA", 0) == 0 &&
                                 node.integer_or("transBatchA", 0) == 0 && is_one(node, "alpha"));
  const bool gathers_rows = is_gather && node.integer_or("axis", 0) == 0 && !weight.is_input_major;
  switch (form) {
    case OnnxForm::dequantize_linear:
    case OnnxForm::cast_and_scale:
      break;
    case OnnxForm::mat_mul_n_bits:
      return is_plain_product || gathers_rows;
    case OnnxForm::gather_rows:
      return gathers_rows;
    case OnnxForm::integer_operator:
      return is_plain_product || consumer.use == Use::conv;
  }
  return true;
}

bool takes_static(const onnx::Model& model, const Consumer& consumer) noexcept {
  const Node& node = model.nodes[consumer.node];
  return onnx::is_product(consumer.use) && !node.inputs[0].empty() && node.outputs.size() == 1 &&
         !node.outputs[0].empty();
}

Result<OnnxForm> onnx_form_of(const onnx::Model& model, const OnnxModelWeight& weight, const QuantizationSpec& spec,
                              OnnxStyle style, OnnxReaders readers) {
  const Tensor& tensor = model.tensors[weight.tensor];
  if (weight.kept != nullptr) return error_at(ErrorCode::format_unsupported, tensor.name, "it stays: {}", weight.kept);
  const auto is_taken = [&](OnnxForm form) {
    return std::any_of(tensor.consumers.begin(), tensor.consumers.end(), [&](const Consumer& consumer) {
      // MatMulNBits is for tables that are multiplied with, too.
      return (form != OnnxForm::mat_mul_n_bits || consumer.use != Use::gather) &&
             takes_form(model, weight, consumer, form, readers);
    });
  };
  const auto serves_all = [&](OnnxForm form) {
    return !tensor.is_output &&
           std::all_of(tensor.consumers.begin(), tensor.consumers.end(), [&](const Consumer& consumer) {
             return consumer.use == Use::view || takes_form(model, weight, consumer, form, readers);
           });
  };
  if (style == OnnxStyle::dynamic) {
    if (is_taken(OnnxForm::integer_operator)) return OnnxForm::integer_operator;
    return error_at(ErrorCode::format_unsupported, tensor.name,
                    "{} has no integer operator that quantizes its input; weight-only forms support it",
                    reader_of(model, tensor));
  }
  if (style == OnnxStyle::dequantize_linear) return OnnxForm::dequantize_linear;
  const auto holds = [&](OnnxForm form) { return bool(onnx_layout(form, describe(model, weight, form), spec)); };
  const bool has_groups = spec.qscheme == QScheme::per_group;
  for (const OnnxForm form : {OnnxForm::mat_mul_n_bits, OnnxForm::gather_rows}) {
    const bool is_cast =
        form == OnnxForm::mat_mul_n_bits && style == OnnxStyle::weight_only && holds(OnnxForm::cast_and_scale);
    if (!is_cast && is_taken(form) && (has_groups || serves_all(form)) && holds(form)) return form;
  }
  if (holds(OnnxForm::cast_and_scale)) return OnnxForm::cast_and_scale;
  return OnnxForm::dequantize_linear;
}

uint32_t dequantized_view(const onnx::Model& model, const OnnxModelWeight& weight) noexcept {
  const Tensor& tensor = model.tensors[weight.tensor];
  const bool is_only_reader =
      std::all_of(tensor.consumers.begin(), tensor.consumers.end(),
                  [&](const Consumer& consumer) { return consumer.use == Use::view || consumer.view == weight.view; });
  const bool is_given_out = std::any_of(tensor.views.begin(), tensor.views.end(), [&](uint32_t view) {
    return view != weight.view && model.views[view].is_output;
  });
  uint32_t found = weight.view;
  const bool is_exchanged = weight.is_batch && found != onnx::kNone && model.views[found].is_transposed;
  if (!is_exchanged && is_only_reader && !is_given_out) return found;
  while (found != onnx::kNone) {
    const uint32_t parent = model.views[found].parent;
    const std::vector<uint64_t>& before = parent == onnx::kNone ? tensor.shape : model.views[parent].shape;
    if (before != weight.shape) return found;
    found = parent;
  }
  return onnx::kNone;
}

OnnxWeight describe(const onnx::Model& model, const OnnxModelWeight& weight, OnnxForm form) {
  const Tensor& tensor = model.tensors[weight.tensor];
  OnnxWeight described;
  described.name = tensor.name;
  described.shape = weight.shape;
  described.source = *onnx::weight_dtype_of(tensor.data_type);
  described.type = *onnx::weight_dtype_of(weight.data_type);
  described.is_input_major = weight.is_input_major;
  described.is_batch = weight.is_batch;
  if (!gives_values(form)) return described;
  const uint32_t view = dequantized_view(model, weight);
  described.type = view == onnx::kNone ? described.source : *onnx::weight_dtype_of(model.views[view].data_type);
  described.is_transposed = view != onnx::kNone && model.views[view].is_transposed;
  return described;
}

}  // namespace wasmquant::conversion
