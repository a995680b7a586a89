// One function for each form: dequantize, multiply, multiply integers; onnx_gather.cpp has the fourth.
#include "onnx_graph/onnx_operators.h"

#include "core/message.h"
#include "core/order.h"
#include "formats/onnx/protobuf.h"
#include "onnx_graph/onnx_weights.h"

namespace wasmquant::conversion {
namespace {

using onnx::Consumer;
using onnx::DataType;
using onnx::Node;
using onnx::Use;

}  // namespace

OnnxOperators::OnnxOperators(OnnxEditor& editor, std::span<const OnnxChoice> choices, uint32_t accuracy_level)
    : editor_(editor), accuracy_level_(accuracy_level) {
  const onnx::Model& model = editor.model;
  for (const OnnxChoice& choice : choices) {
    if (choice.form != OnnxForm::integer_operator) continue;
    for (const Consumer& consumer : model.tensors[choice.tensor].consumers)
      if (takes_form(model, *choice.weight, consumer, choice.form, choice.readers)) {
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

void OnnxOperators::dequantize(const OnnxChoice& choice, uint32_t view, const List<std::string>& names) {
  const onnx::Tensor& tensor = editor_.model.tensors[choice.tensor];
  const std::string_view output = view == onnx::kNone ? tensor.name : editor_.model.views[view].name;
  Pieces pieces = values(choice, output, names);
  if (view == onnx::kNone)
    editor_.drop(tensor, std::move(pieces));
  else
    editor_.replace_node(editor_.model.views[view].node, std::move(pieces));
}

//   X = DequantizeLinear(X_quantized, X_scale, X_zero_point)
//   X = (Cast(X_quantized) - Cast(X_zero_point)) * X_scale
Pieces OnnxOperators::values(const OnnxChoice& choice, std::string_view output, const List<std::string>& names) {
  const std::string_view tensor = editor_.model.tensors[choice.tensor].name;
  const QuantizationSpec& spec = choice.layout->spec;
  Pieces pieces;
  if (choice.form == OnnxForm::dequantize_linear) {
    NodeBytes node("DequantizeLinear", "", tensor, "_DequantizeLinear");
    for (const std::string& name : names) node.input(name);
    node.output(output);
    if (spec.qscheme != QScheme::per_tensor) node.attribute("axis", spec.ch_axis);
    if (spec.qscheme == QScheme::per_group)
      node.attribute("block_size", static_cast<int64_t>(choice.layout->granularity.block));
    editor_.append_node(pieces, node);
    return pieces;
  }
  const auto step = [&](std::string_view op_type, std::string_view suffix, std::string_view left,
                        std::string_view right) {
    std::string name = editor_.fresh(tensor, suffix);
    NodeBytes node(op_type, "", tensor, suffix);
    node.input(left);
    if (right.empty())
      node.attribute("to", float_type_of(*choice.layout));
    else
      node.input(right);
    editor_.append_node(pieces, node.output(name));
    return name;
  };
  std::string codes = step("Cast", "_quantized_cast", names[0], {});
  if (names.size() > 2)
    codes = step("Sub", "_quantized_centred", codes, step("Cast", "_zero_point_cast", names[2], {}));
  editor_.append_node(pieces, NodeBytes("Mul", "", tensor, "_Mul").input(codes).input(names[1]).output(output));
  return pieces;
}

void OnnxOperators::replace(const OnnxChoice& choice, const Consumer& consumer, const List<std::string>& names) {
  const Node& node = editor_.model.nodes[consumer.node];
  Pieces nodes;
  if (consumer.use == Use::gather)
    gather_rows(editor_, choice, node, names, nodes);
  else if (choice.form == OnnxForm::mat_mul_n_bits)
    multiply(choice, node, names, nodes);
  else
    multiply_integers(choice, consumer, names, nodes);
  editor_.replace_node(consumer.node, std::move(nodes));
}

// name of the product, before a bias that Gemm or Conv add
std::string OnnxOperators::product_name(const Node& node) {
  const bool has_bias = !node.op_type.ends_with("MatMul") && node.inputs.size() > 2 && !node.inputs[2].empty();
  return has_bias ? editor_.fresh(node.outputs[0], "_product") : std::string(node.outputs[0]);
}

void OnnxOperators::add_bias(const Node& node, std::string_view product, std::string_view bias, Pieces& nodes) {
  editor_.append_node(nodes, "Add", node, "_bias", {product, bias}, {node.outputs[0]});
}

void OnnxOperators::multiply(const OnnxChoice& choice, const Node& node, const List<std::string>& names,
                             Pieces& nodes) {
  const WeightLayout& layout = *choice.layout;
  const std::string product = product_name(node);
  const std::string_view suffix = layout.bits == 4 ? "_Q4" : layout.bits == 8 ? "_Q8" : "_Q2";
  NodeBytes out("MatMulNBits", kMicrosoft, node.name, suffix);
  out.input(node.inputs[0]);
  for (const std::string& name : names) out.input(name);
  out.output(product);
  out.attribute("K", static_cast<int64_t>(layout.columns));
  out.attribute("N", static_cast<int64_t>(layout.rows));
  out.attribute("bits", layout.bits);
  out.attribute("block_size", static_cast<int64_t>(layout.block));
  if (accuracy_level_ != 0) out.attribute("accuracy_level", accuracy_level_);
  editor_.append_node(nodes, out);
  if (product != node.outputs[0]) add_bias(node, product, node.inputs[2], nodes);
}

// The first node that uses the node's input.
OnnxOperators::QuantizedInput& OnnxOperators::first_use(const Node& node) {
  const size_t at = first_after(input_order_.size(), [&](size_t i) {
    const QuantizedInput& here = inputs_[input_order_[i]];
    return here.name < node.inputs[0] || (here.name == node.inputs[0] && here.graph < node.graph);
  });
  QuantizedInput& first = inputs_[input_order_[at]];
  if (first.codes.empty()) {
    first.codes = editor_.fresh(first.name, "_quantized");
    first.scale = editor_.fresh(first.name, "_scale");
    first.zero_point = editor_.fresh(first.name, "_zero_point");
  }
  return first;
}

//   A -> DynamicQuantizeLinear -> codes, scale, zero point
//   Y = Cast(MatMulInteger(codes, X_quantized, zero point, X_zero_point)) * (scale * X_scale) + bias
void OnnxOperators::multiply_integers(const OnnxChoice& choice, const Consumer& consumer,
                                      const List<std::string>& names, Pieces& nodes) {
  const Node& node = editor_.model.nodes[consumer.node];
  const std::string_view output = node.outputs[0];
  const QuantizedInput& input = first_use(node);
  if (input.node == consumer.node)
    editor_.append_node(nodes, "DynamicQuantizeLinear", node, "_QuantizeLinear", {input.name},
                        {input.codes, input.scale, input.zero_point});
  const bool is_conv = consumer.use == Use::conv;
  const std::string sum = editor_.fresh(output, "_output_quantized"), real = editor_.fresh(output, "_output_cast"),
                    scales = editor_.fresh(output, "_output_scale"), product = product_name(node);
  NodeBytes integer(is_conv ? "ConvInteger" : "MatMulInteger", "", node.name, "_quant");
  integer.input(input.codes).input(names[0]).input(input.zero_point);
  const int16_t offset = choice.layout->code_offset;
  if (names.size() > 2)
    integer.input(names[2]);
  else if (offset != 0)
    integer.input(editor_.constant(node.graph, editor_.model.tensors[choice.tensor].name, "_zero_point", kUint8, {},
                                   std::string(1, static_cast<char>(offset))));
  integer.output(sum);
  Pieces message = editor_.literal(integer.bytes());
  if (is_conv)
    for (const onnx::Attribute& attribute : node.attributes) message.add(attribute.whole);
  editor_.append_node(nodes, message);

  editor_.append_node(nodes, "Cast", node, "_output_cast", {sum}, {real}, "to",
                      static_cast<int64_t>(DataType::float32));
  editor_.append_node(nodes, "Mul", node, "_scales_mul", {input.scale, names[1]}, {scales});
  editor_.append_node(nodes, "Mul", node, "_output_mul", {real, scales}, {product});
  if (product == output) return;
  const size_t rank = choice.layout->shape.size();
  add_bias(node, product, is_conv ? reshaped_bias(node, rank - 1, nodes) : std::string(node.inputs[2]), nodes);
}

// A convolution's bias [M] as [M, 1, …].
std::string OnnxOperators::reshaped_bias(const Node& node, size_t rank, Pieces& nodes) {
  std::vector<uint64_t> dimensions(rank, 1);
  dimensions[0] = ~uint64_t{0};  // -1
  const std::string shape = editor_.int64_list(node.graph, node.outputs[0], "_bias_shape", dimensions);
  const std::string bias = editor_.fresh(node.outputs[0], "_bias_reshaped");
  editor_.append_node(nodes, "Reshape", node, "_bias_reshape", {node.inputs[2], shape}, {bias});
  return bias;
}

}  // namespace wasmquant::conversion
