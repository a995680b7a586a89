// One function for each form: dequantize, multiply, multiply integers, gather.
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
      if (takes_form(model, *choice.weight, consumer, choice.form, choice.readers, *choice.layout)) {
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
  const QuantizationSpec& spec = choice.layout->spec;
  NodeBytes node("DequantizeLinear", "", tensor.name, "_DequantizeLinear");
  for (const std::string& name : names) node.input(name);
  node.output(output);
  if (spec.qscheme != QScheme::per_tensor) node.attribute("axis", spec.ch_axis);
  if (spec.qscheme == QScheme::per_group)
    node.attribute("block_size", static_cast<int64_t>(choice.layout->granularity.block));
  Pieces pieces;
  editor_.append_node(pieces, node);
  if (view == onnx::kNone)
    editor_.drop(tensor, std::move(pieces));
  else
    editor_.replace_node(editor_.model.views[view].node, std::move(pieces));
}

void OnnxOperators::replace(const OnnxChoice& choice, const Consumer& consumer, const List<std::string>& names) {
  const Node& node = editor_.model.nodes[consumer.node];
  Pieces nodes;
  if (consumer.use == Use::gather)
    gather(choice, node, names, nodes);
  else if (choice.form == OnnxForm::mat_mul_n_bits)
    multiply(choice, node, names, nodes);
  else
    multiply_integers(consumer, choice.layout->shape.size(), names, nodes);
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
  out.attribute("block_size", static_cast<int64_t>(layout.granularity.block));
  if (accuracy_level_ != 0) out.attribute("accuracy_level", accuracy_level_);
  editor_.append_node(nodes, out);
  if (product != node.outputs[0]) add_bias(node, product, node.inputs[2], nodes);
}

void OnnxOperators::gather(const OnnxChoice& choice, const Node& node, const List<std::string>& names, Pieces& nodes) {
  NodeBytes out("GatherBlockQuantized", kMicrosoft, node.name, choice.layout->bits == 8 ? "_Q8" : "_Q4");
  const bool is_shared = choice.form == OnnxForm::mat_mul_n_bits;
  out.input(is_shared ? rows_of(choice, node, names[0], nodes) : names[0]).input(node.inputs[1]);
  for (size_t i = 1; i < names.size(); ++i) out.input(names[i]);
  out.output(node.outputs[0]);
  out.attribute("bits", choice.layout->bits);
  out.attribute("block_size", static_cast<int64_t>(choice.layout->granularity.block));
  out.attribute("gather_axis", 0).attribute("quantize_axis", 1);
  editor_.append_node(nodes, out);
}

// The codes of MatMulNBits, [N, groups, bytes], as GatherBlockQuantized reads the same bytes: [N, groups * bytes].
std::string OnnxOperators::rows_of(const OnnxChoice& choice, const Node& node, std::string_view codes, Pieces& nodes) {
  const WeightLayout& layout = *choice.layout;
  const std::string rows = editor_.fresh(node.outputs[0], "_rows");
  editor_.append_node(nodes, "Reshape", node, "_rows",
                      {codes, int64_list(node, "_rows_shape", {layout.rows, layout.columns * layout.bits / 8})},
                      {rows});
  return rows;
}

// The name of a new tensor with these values, after the node's output.
std::string OnnxOperators::int64_list(const Node& node, std::string_view suffix, const std::vector<uint64_t>& values) {
  const std::string name = editor_.fresh(node.outputs[0], suffix);
  std::string bytes;
  for (const uint64_t value : values)
    for (int byte = 0; byte < 8; ++byte) bytes += static_cast<char>(value >> (8 * byte) & 0xFF);
  const uint64_t count[] = {values.size()};
  std::string tensor = tensor_head(name, kInt64, count);
  protobuf::append_field(tensor, kRawData, bytes);
  editor_.add_initializer(node.graph, editor_.literal(tensor));
  return name;
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
    first.codes = editor_.fresh(first.name, "_quantized");
    first.scale = editor_.fresh(first.name, "_scale");
    first.zero_point = editor_.fresh(first.name, "_zero_point");
  }
  return first;
}

//   A -> DynamicQuantizeLinear -> codes, scale, zero point
//   Y = Cast(MatMulInteger(codes, X_quantized, zero point, X_zero_point)) * (scale * X_scale) + bias
void OnnxOperators::multiply_integers(const Consumer& consumer, size_t rank, const List<std::string>& names,
                                      Pieces& nodes) {
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
  if (names.size() > 2) integer.input(names[2]);
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
  add_bias(node, product, is_conv ? reshaped_bias(node, rank - 1, nodes) : std::string(node.inputs[2]), nodes);
}

// A convolution's bias [M] as [M, 1, …].
std::string OnnxOperators::reshaped_bias(const Node& node, size_t rank, Pieces& nodes) {
  std::vector<uint64_t> dimensions(rank, 1);
  dimensions[0] = ~uint64_t{0};  // -1
  const std::string shape = int64_list(node, "_bias_shape", dimensions);
  const std::string bias = editor_.fresh(node.outputs[0], "_bias_reshaped");
  editor_.append_node(nodes, "Reshape", node, "_bias_reshape", {node.inputs[2], shape}, {bias});
  return bias;
}

}  // namespace wasmquant::conversion
