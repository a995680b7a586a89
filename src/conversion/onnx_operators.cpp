#include "conversion/onnx_operators.h"

#include "conversion/onnx_weights.h"
#include "core/message.h"
#include "core/order.h"
#include "formats/protobuf.h"

namespace wasmquant::conversion {
namespace {

using onnx::Consumer;
using onnx::DataType;
using onnx::Node;
using onnx::Use;

constexpr uint32_t kRawData = 9;  // of TensorProto
constexpr uint32_t kInt64 = 7;    // data type

}  // namespace

OnnxOperators::OnnxOperators(OnnxEditor& editor, std::span<const OnnxChoice> choices, uint32_t accuracy_level)
    : editor_(editor), accuracy_level_(accuracy_level) {
  const onnx::Model& model = editor.model;
  for (const OnnxChoice& choice : choices) {
    if (choice.form != OnnxForm::integer_operator) continue;
    for (const Consumer& consumer : model.tensors[choice.tensor].consumers)
      if (takes_form(model, consumer, choice.form)) {
        const Node& node = model.nodes[consumer.node];
        inputs_.push_back({node.inputs[0], node.graph, consumer.node, {}, {}, {}});
      }
  }
  input_order_ = sorted_order(inputs_.size(), [&](uint32_t a, uint32_t b) {
    const QuantizedInput &left = inputs_[a], &right = inputs_[b];
    if (left.name != right.name) return left.name < right.name;
    if (left.graph != right.graph) return left.graph < right.graph;
    return left.node < right.node;
  });
}

void OnnxOperators::dequantize(const OnnxChoice& choice, const List<std::string>& names) {
  const onnx::Tensor& tensor = editor_.model.tensors[choice.tensor];
  const QuantizationSpec& spec = choice.layout->spec;
  NodeBytes node("DequantizeLinear", "", text_of("{}_DequantizeLinear", tensor.name));
  for (const std::string& name : names) node.input(name);
  node.output(tensor.name);
  if (spec.qscheme != QScheme::per_tensor) node.attribute("axis", spec.ch_axis);
  if (spec.qscheme == QScheme::per_group)
    node.attribute("block_size", static_cast<int64_t>(choice.layout->granularity.block));
  Pieces pieces;
  editor_.append_node(pieces, node);
  editor_.drop(tensor, std::move(pieces));
}

void OnnxOperators::replace(const OnnxChoice& choice, const Consumer& consumer, const List<std::string>& names) {
  const Node& node = editor_.model.nodes[consumer.node];
  Pieces nodes;
  if (choice.form == OnnxForm::mat_mul_n_bits)
    multiply(choice, node, names, nodes);
  else if (choice.form == OnnxForm::gather_block_quantized)
    gather(choice, node, names, nodes);
  else
    multiply_integers(consumer, choice.layout->shape.size(), names, nodes);
  editor_.replace_node(consumer.node, std::move(nodes));
}

// name of the product, before a bias that Gemm or Conv add
std::string OnnxOperators::product_name(const Node& node) {
  const bool has_bias = node.op_type != "MatMul" && node.inputs.size() > 2 && !node.inputs[2].empty();
  return has_bias ? editor_.fresh(text_of("{}_product", node.outputs[0])) : std::string(node.outputs[0]);
}

void OnnxOperators::add_bias(const Node& node, std::string_view product, std::string_view bias, Pieces& nodes) {
  NodeBytes add("Add", "", text_of("{}_bias", node.name));
  add.input(product).input(bias).output(node.outputs[0]);
  editor_.append_node(nodes, add);
}

void OnnxOperators::multiply(const OnnxChoice& choice, const Node& node, const List<std::string>& names,
                             Pieces& nodes) {
  const WeightLayout& layout = *choice.layout;
  const std::string product = product_name(node);
  NodeBytes out("MatMulNBits", kMicrosoft, text_of("{}_Q{}", node.name, uint32_t{layout.bits}));
  out.input(node.inputs[0]);
  for (const std::string& name : names) out.input(name);
  out.output(product);
  out.attribute("K", static_cast<int64_t>(layout.columns));
  out.attribute("N", static_cast<int64_t>(layout.rows));
  out.attribute("bits", layout.bits);
  out.attribute("block_size", static_cast<int64_t>(layout.granularity.block));
  if (accuracy_level_ != 0) out.attribute("accuracy_level", accuracy_level_);
  editor_.append_node(nodes, out);
  if (product != node.outputs[0]) add_bias(node, product, node.inputs[2], nodes);
}

void OnnxOperators::gather(const OnnxChoice& choice, const Node& node, const List<std::string>& names, Pieces& nodes) {
  NodeBytes out("GatherBlockQuantized", kMicrosoft, text_of("{}_Q4", node.name));
  out.input(names[0]).input(node.inputs[1]);
  for (size_t i = 1; i < names.size(); ++i) out.input(names[i]);
  out.output(node.outputs[0]);
  out.attribute("bits", choice.layout->bits);
  out.attribute("block_size", static_cast<int64_t>(choice.layout->granularity.block));
  out.attribute("gather_axis", 0).attribute("quantize_axis", 1);
  editor_.append_node(nodes, out);
}

// The first node that uses the node's input.
OnnxOperators::QuantizedInput& OnnxOperators::first_use(const Node& node) {
  const auto less = [&](uint32_t i) {
    const QuantizedInput& here = inputs_[i];
    return here.name < node.inputs[0] || (here.name == node.inputs[0] && here.graph < node.graph);
  };
  size_t low = 0, high = input_order_.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (less(input_order_[middle]))
      low = middle + 1;
    else
      high = middle;
  }
  QuantizedInput& first = inputs_[input_order_[low]];
  if (first.codes.empty()) {
    first.codes = editor_.fresh(text_of("{}_quantized", first.name));
    first.scale = editor_.fresh(text_of("{}_scale", first.name));
    first.zero_point = editor_.fresh(text_of("{}_zero_point", first.name));
  }
  return first;
}

//   A -> DynamicQuantizeLinear -> codes, scale, zero point
//   Y = Cast(MatMulInteger(codes, X_quantized, zero point, X_zero_point)) * (scale * X_scale) + bias
void OnnxOperators::multiply_integers(const Consumer& consumer, size_t rank, const List<std::string>& names,
                                      Pieces& nodes) {
  const Node& node = editor_.model.nodes[consumer.node];
  const std::string_view output = node.outputs[0];
  const auto of_output = [&](const char* suffix) { return editor_.fresh(text_of("{}{}", output, suffix)); };
  const QuantizedInput& input = first_use(node);
  if (input.node == consumer.node) {
    NodeBytes quantize("DynamicQuantizeLinear", "", text_of("{}_QuantizeLinear", input.codes));
    quantize.input(input.name).output(input.codes).output(input.scale).output(input.zero_point);
    editor_.append_node(nodes, quantize);
  }
  const bool is_conv = consumer.use == Use::conv;
  const std::string sum = of_output("_output_quantized"), real = of_output("_output_cast"),
                    scales = of_output("_output_scale"), product = product_name(node);
  NodeBytes integer(is_conv ? "ConvInteger" : "MatMulInteger", "", text_of("{}_quant", node.name));
  integer.input(input.codes).input(names[0]).input(input.zero_point);
  if (names.size() > 2) integer.input(names[2]);
  integer.output(sum);
  Pieces message = editor_.literal(integer.bytes());
  if (is_conv)
    for (const onnx::Attribute& attribute : node.attributes) message.add(attribute.whole);
  editor_.append_node(nodes, message);

  NodeBytes cast("Cast", "", text_of("{}_output_cast", node.name));
  cast.input(sum).output(real).attribute("to", static_cast<int64_t>(DataType::float32));
  editor_.append_node(nodes, cast);
  NodeBytes multiply_scales("Mul", "", text_of("{}_scales_mul", node.name));
  multiply_scales.input(input.scale).input(names[1]).output(scales);
  editor_.append_node(nodes, multiply_scales);
  NodeBytes multiply_output("Mul", "", text_of("{}_output_mul", node.name));
  multiply_output.input(real).input(scales).output(product);
  editor_.append_node(nodes, multiply_output);
  if (product == output) return;
  add_bias(node, product, is_conv ? reshaped_bias(node, rank - 1, nodes) : std::string(node.inputs[2]), nodes);
}

// A convolution's bias [M] as [M, 1, …].
std::string OnnxOperators::reshaped_bias(const Node& node, size_t rank, Pieces& nodes) {
  const std::string shape = editor_.fresh(text_of("{}_bias_shape", node.outputs[0]));
  const std::string bias = editor_.fresh(text_of("{}_bias_reshaped", node.outputs[0]));
  std::string values(8, '\xff');  // -1
  for (size_t d = 1; d < rank; ++d) values += std::string("\1\0\0\0\0\0\0\0", 8);
  const uint64_t dimensions[] = {rank};
  std::string tensor = tensor_head(shape, kInt64, dimensions);
  protobuf::append_field(tensor, kRawData, values);
  editor_.add_initializer(node.graph, editor_.literal(tensor));
  NodeBytes reshape("Reshape", "", text_of("{}_bias_reshape", node.name));
  reshape.input(node.inputs[2]).input(shape).output(bias);
  editor_.append_node(nodes, reshape);
  return bias;
}

}  // namespace wasmquant::conversion
