// Field numbers are those of onnx.proto.
#include "onnx_graph/onnx_static.h"

#include "onnx_graph/onnx_weights.h"

namespace wasmquant::conversion {
namespace {

using onnx::DataType;

class StaticValues {
 public:
  explicit StaticValues(OnnxEditor& editor) : editor_(editor) {}

  // Nodes are visited in file order: what one of them quantizes is available to later ones.
  void rewrite(const OnnxChoice& choice, const onnx::Consumer& consumer) {
    const uint32_t index = consumer.node;
    const onnx::Node& node = editor_.model.nodes[index];
    float_type_ = type_seen(editor_.model, editor_.model.tensors[choice.tensor], consumer);
    const std::string_view result = node.outputs[0];
    std::string input(node.inputs[0]), output(result);
    Pieces nodes;
    if (choice.input) input = dequantized(node, *choice.input, nodes);
    if (choice.output) output = editor_.fresh(result, "_float");
    editor_.append_node(nodes, editor_.renamed(node, input, output));
    if (choice.output) add_pair(node, ActivationRole::output, *choice.output, output, result, nodes);
    editor_.replace_node(index, std::move(nodes));
  }

 private:
  struct Pair {
    std::string_view value;
    uint32_t graph = 0;
    StaticScale scale;
    std::string dequantized;
  };

  // The name of the node's dequantized input.
  std::string dequantized(const onnx::Node& node, const StaticScale& scale, Pieces& nodes) {
    const std::string_view value = node.inputs[0];
    for (const Pair& pair : pairs_)
      if (pair.graph == node.graph && pair.scale == scale && pair.value == value) return pair.dequantized;
    std::string name = editor_.fresh(value, "_dequantized");
    add_pair(node, ActivationRole::input, scale, value, name, nodes);
    pairs_.push_back({value, node.graph, scale, name});
    return name;
  }

  void add_pair(const onnx::Node& node, ActivationRole role, const StaticScale& scale, std::string_view from,
                std::string_view to, Pieces& nodes) {
    const bool is_input = role == ActivationRole::input;
    const std::string_view value = is_input ? from : to;
    const std::string codes = editor_.fresh(value, "_quantized");
    const std::string scale_name =
        editor_.constant(node.graph, value, "_scale", float_type_, {}, float_bytes(scale.scale, float_type_));
    // Its type is that of the codes; without it they would be uint8.
    const auto code_type = static_cast<uint32_t>(scale.is_signed ? DataType::int8 : DataType::uint8);
    const std::string zero_point = editor_.constant(node.graph, value, "_zero_point", code_type, {},
                                                    std::string(1, static_cast<char>(scale.zero_point)));
    editor_.append_node(nodes, "QuantizeLinear", node, is_input ? "_input_QuantizeLinear" : "_output_QuantizeLinear",
                        {from, scale_name, zero_point}, {codes});
    editor_.append_node(nodes, "DequantizeLinear", node,
                        is_input ? "_input_DequantizeLinear" : "_output_DequantizeLinear",
                        {codes, scale_name, zero_point}, {to});
  }

  OnnxEditor& editor_;
  List<Pair> pairs_;  // of inputs
  uint32_t float_type_ = 0;
};

}  // namespace

void quantize_values(OnnxEditor& editor, std::span<const OnnxChoice> choices) {
  const onnx::Model& model = editor.model;
  struct Static {
    const OnnxChoice* choice = nullptr;
    const onnx::Consumer* consumer = nullptr;
  };
  List<Static> by_node(model.nodes.size());
  for (const OnnxChoice& choice : choices)
    if (choice.input || choice.output)
      for (const onnx::Consumer& consumer : model.tensors[choice.tensor].consumers)
        if (takes_static(model, consumer)) by_node[consumer.node] = {&choice, &consumer};
  StaticValues values(editor);
  for (const Static& found : by_node)
    if (found.choice != nullptr) values.rewrite(*found.choice, *found.consumer);
}

}  // namespace wasmquant::conversion
