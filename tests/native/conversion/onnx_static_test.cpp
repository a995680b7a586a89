// Pairs of QuantizeLinear and DequantizeLinear around layers, with scales that are known.
#include "onnx_graph/onnx_static.h"

#include <doctest/doctest.h>

#include <cmath>
#include <deque>

#include "formats/onnx_bytes.h"
#include "onnx_graph/onnx_weights.h"

using namespace wasmquant;
using namespace test_files;
using conversion::OnnxChoice;
using conversion::Segment;
using conversion::StaticScale;

namespace {

using OnnxStaticTexts = std::vector<std::string>;
using Scales = std::vector<std::pair<std::optional<StaticScale>, std::optional<StaticScale>>>;

// All weights int8; the scales of their inputs and outputs, by number of the weight. Codes are 0xC0.
std::string rewritten(const std::string& file, const Scales& scales) {
  const auto model = read_onnx(file);
  REQUIRE_MESSAGE(model, model.error().message);
  std::deque<WeightLayout> layouts;
  std::vector<OnnxChoice> choices;
  const auto weights = conversion::list_weights(*model);
  for (const auto& weight : weights) {
    constexpr auto kForm = OnnxForm::dequantize_linear;
    auto layout = onnx_layout(kForm, conversion::describe(*model, weight, kForm), QuantizationSpec());
    REQUIRE(bool(layout));
    layouts.push_back(std::move(*layout));
    const auto& [input, output] = scales[choices.size()];
    choices.push_back({weight.tensor, kForm, &layouts.back(), &weight, input, output});
  }
  DiagnosticList diagnostics;
  const auto result = conversion::rewrite_onnx(*model, choices, {}, diagnostics);
  REQUIRE_MESSAGE(result, result.error().message);
  std::string out;
  for (const Segment& segment : result->model.segments) {
    const auto begin = static_cast<size_t>(segment.begin), bytes = static_cast<size_t>(segment.bytes);
    if (segment.kind == Segment::Kind::literal) out.append(result->literals, begin, bytes);
    if (segment.kind == Segment::Kind::model) out.append(file, begin, bytes);
    if (segment.kind == Segment::Kind::component) out.append(bytes, '\xC0');
  }
  return out;
}

// "name:op(inputs)>outputs" of each node, in order; "+" before nodes of graphs inside.
OnnxStaticTexts onnx_static_nodes_of(const onnx::Model& model) {
  OnnxStaticTexts nodes;
  for (const onnx::Node& node : model.nodes) {
    std::string text = (node.graph > 0 ? "+" : "") + std::string(node.name) + ":" + std::string(node.op_type);
    for (size_t i = 0; i < node.inputs.size(); ++i) text += (i == 0 ? "(" : ",") + std::string(node.inputs[i]);
    if (!node.inputs.empty()) text += ")";
    for (const auto output : node.outputs) text += ">" + std::string(output);
    nodes.push_back(text);
  }
  return nodes;
}

const onnx::Tensor& tensor_named(const onnx::Model& model, std::string_view name) {
  for (const onnx::Tensor& tensor : model.tensors)
    if (tensor.name == name) return tensor;
  FAIL("no tensor " << name);
  return model.tensors[0];
}
std::string values_of(const std::string& file, const onnx::Tensor& tensor) {
  return file.substr(static_cast<size_t>(tensor.begin), static_cast<size_t>(tensor.end - tensor.begin));
}

constexpr StaticScale kUnsigned{0.5f, 200, false}, kSigned{0.25f, -7, true};

}  // namespace

TEST_CASE("one pair of nodes before a layer and one after it, under the value's name") {
  const Message gemm = node_of("Gemm", {"x", "w", "b"}, {"y"}, "/up/Gemm").message(5, attribute_of("transB", 1));
  const std::string file = model_of(Message()
                                        .message(1, node_of("Relu", {"in"}, {"x"}, "before"))
                                        .message(1, gemm)
                                        .message(5, raw_tensor("w", {4, 8}))
                                        .message(5, raw_tensor("b", {4}))
                                        .message(12, value_of("y")));
  const std::string out = rewritten(file, {{kUnsigned, kSigned}});
  const auto model = read_onnx(out);
  REQUIRE_MESSAGE(model, model.error().message);
  CHECK(onnx_static_nodes_of(*model) ==
        OnnxStaticTexts{
            "w_DequantizeLinear:DequantizeLinear(w_quantized,w_scale)>w", "before:Relu(in)>x",
            "/up/Gemm_input_QuantizeLinear:QuantizeLinear(x,x_scale,x_zero_point)>x_quantized",
            "/up/Gemm_input_DequantizeLinear:DequantizeLinear(x_quantized,x_scale,x_zero_point)>x_dequantized",
            "/up/Gemm:Gemm(x_dequantized,w,b)>y_float",
            "/up/Gemm_output_QuantizeLinear:QuantizeLinear(y_float,y_scale,y_zero_point)>y_quantized",
            "/up/Gemm_output_DequantizeLinear:DequantizeLinear(y_quantized,y_scale,y_zero_point)>y"});
  const onnx::Tensor& scale = tensor_named(*model, "x_scale");
  CHECK(scale.shape.empty());
  CHECK(scale.data_type == 1);
  CHECK(values_of(out, scale) == floats({0.5f}));
  const onnx::Tensor& points = tensor_named(*model, "x_zero_point");
  CHECK(points.data_type == static_cast<uint32_t>(onnx::DataType::uint8));
  CHECK(values_of(out, points) == "\xC8");
  const onnx::Tensor& of_output = tensor_named(*model, "y_zero_point");
  CHECK(of_output.data_type == static_cast<uint32_t>(onnx::DataType::int8));
  CHECK(values_of(out, of_output) == "\xF9");
  for (const onnx::Node& node : model->nodes)
    if (node.op_type == "Gemm") CHECK(node.find("transB") != nullptr);
}

TEST_CASE("layers that quantize a value alike share a pair, others have their own; unnamed nodes stay unnamed") {
  Message graph;
  graph.message(1, node_of("Relu", {"in"}, {"x"}));
  for (const char* name : {"a", "b", "c"})
    graph.message(1, node_of("MatMul", {"x", name}, {std::string("of_") + name}))
        .message(5, raw_tensor(name, {8, 4}))
        .message(12, value_of(std::string("of_") + name));
  const auto model = read_onnx(rewritten(model_of(graph), {{kUnsigned, {}}, {kSigned, {}}, {kUnsigned, {}}}));
  REQUIRE_MESSAGE(model, model.error().message);
  const OnnxStaticTexts nodes = onnx_static_nodes_of(*model);
  CHECK(OnnxStaticTexts(nodes.begin() + 3, nodes.end()) ==
        OnnxStaticTexts{":Relu(in)>x", ":QuantizeLinear(x,x_scale,x_zero_point)>x_quantized",
                        ":DequantizeLinear(x_quantized,x_scale,x_zero_point)>x_dequantized",
                        ":MatMul(x_dequantized,a)>of_a", ":QuantizeLinear(x,x_scale_,x_zero_point_)>x_quantized_",
                        ":DequantizeLinear(x_quantized_,x_scale_,x_zero_point_)>x_dequantized_",
                        ":MatMul(x_dequantized_,b)>of_b", ":MatMul(x_dequantized,c)>of_c"});
}

TEST_CASE("values inside branches are quantized inside them, float16 by float16 scales") {
  const Message half = tensor_of("w", {4, 2}, 10).text(9, std::string(16, '\x3c'));
  const Message branch =
      Message().message(1, node_of("MatMul", {"x", "w"}, {"y"}, "m")).message(5, half).message(12, value_of("y"));
  const Message attribute = Message().text(1, "then_branch").message(6, branch).number(20, 5);
  const std::string file = model_of(Message()
                                        .message(1, node_of("Relu", {"in"}, {"x"}, "before"))
                                        .message(1, node_of("If", {"c"}, {"z"}, "if").message(5, attribute))
                                        .message(12, value_of("z")),
                                    19);
  const std::string out = rewritten(file, {{kUnsigned, {}}});
  const auto model = read_onnx(out);
  REQUIRE_MESSAGE(model, model.error().message);
  const OnnxStaticTexts nodes = onnx_static_nodes_of(*model);
  CHECK(OnnxStaticTexts(nodes.begin() + 3, nodes.end()) ==
        OnnxStaticTexts{"+m_input_QuantizeLinear:QuantizeLinear(x,x_scale,x_zero_point)>x_quantized",
                        "+m_input_DequantizeLinear:DequantizeLinear(x_quantized,x_scale,x_zero_point)>x_dequantized",
                        "+m:MatMul(x_dequantized,w)>y"});
  const onnx::Tensor& scale = tensor_named(*model, "x_scale");
  CHECK(scale.graph == 1);
  CHECK(scale.data_type == 10);
  CHECK(values_of(out, scale) == std::string("\0\x38", 2));
}
