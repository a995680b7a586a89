// What a model with dynamic or static inputs and outputs computes, said in float operators, for comparison.
#include "formats/onnx/protobuf.h"
#include "onnx_graph/onnx_edits.h"
#include "onnx_graph/onnx_weights.h"
#include "tool.h"

namespace wasmquant::onnx_tool {
namespace {

// A model whose nodes are being put between others.
class Around {
 public:
  explicit Around(const onnx::Model& model) : model_(model), edits_(*model.skeleton) {}

  void add(conversion::Pieces& to, const std::string& message) {
    conversion::Pieces inner;
    inner.add(literals_, message);
    to.add_field(literals_, 1, inner);
  }
  // The node with other names for its first input and its output, between what goes before and behind it.
  void replace(const onnx::Node& node, std::string_view input, std::string_view output,
               const conversion::Pieces& before, const conversion::Pieces& behind) {
    std::string names;
    for (size_t i = 0; i < node.inputs.size(); ++i) protobuf::append_field(names, 1, i == 0 ? input : node.inputs[i]);
    protobuf::append_field(names, 2, output);
    conversion::Pieces nodes = before, message;
    for (onnx::Fields f(*model_.skeleton, model_.skeleton->field(node.whole.begin).payload); f.next();)
      if (f.field.number > 2) message.add(f.field.whole);
    message.add(literals_, names);
    nodes.add_field(literals_, 1, message);
    nodes.add(behind);
    edits_.replace(node.whole, std::move(nodes));
    for (uint32_t g = node.graph;; g = model_.graphs[g].parent) {
      edits_.open(model_.graphs[g].whole);
      if (model_.graphs[g].parent == onnx::kNone) break;
      edits_.open(model_.graphs[g].attribute);
      edits_.open(model_.nodes[model_.graphs[g].parent_node].whole);
    }
  }
  std::string bytes(const std::string& file) {
    const conversion::Pieces pieces = take(edits_.apply(literals_));
    conversion::OnnxRewrite rewrite;
    rewrite.literals = literals_;
    rewrite.model = {pieces.segments(), pieces.bytes()};
    return bytes_of(rewrite.model, rewrite, {file, {}}, {});
  }

 private:
  const onnx::Model& model_;
  conversion::Edits edits_;
  std::string literals_;
};

using conversion::NodeBytes;

// Through DynamicQuantizeLinear and back.
void add_dynamic(Around& around, std::string_view from, const std::string& to, conversion::Pieces& nodes) {
  around.add(nodes, NodeBytes("DynamicQuantizeLinear", "", to, "_q")
                        .input(from)
                        .output(to + "_codes")
                        .output(to + "_scale")
                        .output(to + "_zero")
                        .bytes());
  around.add(nodes, NodeBytes("DequantizeLinear", "", to, "_d")
                        .input(to + "_codes")
                        .input(to + "_scale")
                        .input(to + "_zero")
                        .output(to)
                        .bytes());
}

// clip(round(x / scale) + zero_point, low, high), and back, in floats.
void add_static(Around& around, std::string_view from, const std::string& to, const conversion::StaticScale& scale,
                conversion::Pieces& nodes) {
  std::string last(from);
  const std::string base = to + "_static";
  int number = 0;
  const auto constant = [&](float value) {
    const std::string name = base + std::to_string(++number);
    std::string tensor = conversion::tensor_head(name, 1, {}), attribute, node;
    protobuf::append_field(tensor, 9, std::string_view(reinterpret_cast<const char*>(&value), sizeof(value)));
    protobuf::append_field(attribute, 1, "value");
    protobuf::append_field(attribute, 5, tensor);
    protobuf::append_field(attribute, 20, uint64_t{4});
    node = NodeBytes("Constant", "", name, "_c").output(name).bytes();
    protobuf::append_field(node, 5, attribute);
    around.add(nodes, node);
    return name;
  };
  const auto step = [&](const char* op_type, const std::vector<std::string>& others, bool is_last = false) {
    const std::string name = is_last ? to : base + std::to_string(++number);
    NodeBytes node(op_type, "", base + std::to_string(number), op_type);
    node.input(last);
    for (const std::string& other : others) node.input(other);
    around.add(nodes, node.output(name).bytes());
    last = name;
  };
  const std::string by = constant(scale.scale), zero = constant(scale.zero_point);
  step("Div", {by});
  step("Round", {});
  step("Add", {zero});
  step("Clip", {constant(scale.is_signed ? -128.0f : 0.0f), constant(scale.is_signed ? 127.0f : 255.0f)});
  step("Sub", {zero});
  step("Mul", {by}, true);
}

}  // namespace

std::string with_quantized_values(const std::string& floats, const std::vector<conversion::OnnxChoice>& choices) {
  const onnx::Model before = read_model(floats);
  conversion::OnnxOptions options;
  options.least_opset = 11;
  DiagnosticList diagnostics;
  const auto raised = take(conversion::rewrite_onnx(before, {}, options, diagnostics));
  const std::string file = bytes_of(raised.model, raised, {floats, {}}, {});
  const onnx::Model model = read_model(file);
  Around around(model);
  for (const auto& choice : choices) {
    const onnx::Tensor& weight = before.tensors[choice.tensor];  // raising adds others
    const auto same = std::find_if(model.tensors.begin(), model.tensors.end(), [&](const onnx::Tensor& tensor) {
      return tensor.name == weight.name && tensor.graph == weight.graph;
    });
    const bool is_dynamic = choice.form == OnnxForm::integer_operator;
    conversion::OnnxModelWeight here = *choice.weight;
    here.tensor = static_cast<uint32_t>(same - model.tensors.begin());
    for (const onnx::Consumer& consumer : same->consumers) {
      if (is_dynamic ? !conversion::takes_form(model, here, consumer, choice.form, choice.readers)
                     : !conversion::takes_static(model, consumer) || (!choice.input && !choice.output))
        continue;
      const onnx::Node& node = model.nodes[consumer.node];
      const std::string result(node.outputs[0]), name = result + "_reference";
      conversion::Pieces in, out;
      if (is_dynamic) add_dynamic(around, node.inputs[0], name, in);
      if (choice.input) add_static(around, node.inputs[0], name, *choice.input, in);
      if (choice.output) add_static(around, result + "_float", result, *choice.output, out);
      around.replace(node, is_dynamic || choice.input ? name : std::string(node.inputs[0]),
                     choice.output ? result + "_float" : result, in, out);
    }
  }
  return around.bytes(file);
}

}  // namespace wasmquant::onnx_tool
