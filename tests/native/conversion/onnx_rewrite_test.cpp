// Rewritten ONNX models: their nodes, their bytes, and what stays.
#include "onnx_graph/onnx_rewrite.h"

#include <doctest/doctest.h>

#include <deque>

#include "formats/onnx_bytes.h"
#include "onnx_graph/onnx_edits.h"
#include "onnx_graph/onnx_weights.h"

using namespace wasmquant;
using namespace test_files;
using conversion::OnnxStyle;
using conversion::Segment;

namespace {

QuantizationSpec spec_of(Dtype dtype, QScheme qscheme, int64_t group_size = 32) {
  QuantizationSpec spec;
  spec.dtype = dtype;
  spec.qscheme = qscheme;
  spec.symmetric = info_of(dtype).is_signed;
  spec.group_size = group_size;
  if (qscheme == QScheme::per_group) spec.ch_axis = 1;
  return spec;
}
QuantizationSpec int4_groups() { return spec_of(Dtype::int4, QScheme::per_group); }

struct Outcome {
  std::string file, data;
  uint32_t opset = 0, replaced = 0;
  std::vector<std::string> diagnostics;
  std::string error;
};

// Components are filled with 0xC0 + their number.
std::string bytes_of(const conversion::OnnxFile& file, const std::string& literals, const std::string& in,
                     const std::string& external) {
  std::string out;
  for (const Segment& segment : file.segments) {
    const auto begin = static_cast<size_t>(segment.begin), bytes = static_cast<size_t>(segment.bytes);
    if (segment.kind == Segment::Kind::literal) out.append(literals, begin, bytes);
    if (segment.kind == Segment::Kind::model) out.append(in, begin, bytes);
    if (segment.kind == Segment::Kind::external) out.append(external, begin, bytes);
    if (segment.kind == Segment::Kind::component) out.append(bytes, static_cast<char>(0xC0 + segment.component));
    if (segment.kind == Segment::Kind::zeros) out.append(bytes, '\0');
  }
  CHECK(out.size() == file.bytes);
  return out;
}

Outcome rewrite(const std::string& file, const QuantizationSpec& spec, OnnxStyle style = OnnxStyle::weight_only,
                conversion::OnnxOptions options = {}, const std::string& external = {}) {
  Outcome out;
  const auto model = read_onnx(file);
  REQUIRE_MESSAGE(model, model.error().message);
  std::deque<WeightLayout> layouts;
  std::vector<conversion::OnnxChoice> choices;
  const auto weights = conversion::list_weights(*model);
  for (const auto& weight : weights) {
    const auto form = conversion::onnx_form_of(*model, weight, spec, style);
    if (!form) continue;
    auto layout = onnx_layout(*form, conversion::describe(*model, weight, *form), spec);
    if (!layout) continue;
    layouts.push_back(std::move(*layout));
    choices.push_back({weight.tensor, *form, &layouts.back(), &weight, {}, {}});
  }
  DiagnosticList diagnostics;
  const auto rewritten = conversion::rewrite_onnx(*model, choices, options, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.items())
    out.diagnostics.push_back(std::string(diagnostic.code.name()));
  if (!rewritten) {
    out.error = rewritten.error().message;
    return out;
  }
  out.file = bytes_of(rewritten->model, rewritten->literals, file, external);
  out.data = bytes_of(rewritten->data, rewritten->literals, file, external);
  out.opset = rewritten->opset;
  out.replaced = rewritten->replaced;
  return out;
}

// What a rewritten file holds, as a reader sees it: "op(inputs)->outputs" for each node, in order.
std::vector<std::string> onnx_rewrite_nodes_of(const std::string& file) {
  const auto model = read_onnx(file);
  REQUIRE_MESSAGE(model, model.error().message);
  std::vector<std::string> nodes;
  for (const onnx::Node& node : model->nodes) {
    std::string text(node.op_type);
    for (size_t i = 0; i < node.inputs.size(); ++i) text += (i == 0 ? "(" : ",") + std::string(node.inputs[i]);
    if (!node.inputs.empty()) text += ")";
    for (const auto output : node.outputs) text += ">" + std::string(output);
    nodes.push_back(text);
  }
  return nodes;
}
std::vector<std::string> tensors_of(const std::string& file) {
  const auto model = read_onnx(file);
  REQUIRE_MESSAGE(model, model.error().message);
  std::vector<std::string> names;
  for (const onnx::Tensor& tensor : model->tensors) names.emplace_back(tensor.name);
  return names;
}
using OnnxRewriteTexts = std::vector<std::string>;

Message linear(const Message& weight) {
  return Message()
      .message(1, node_of("Relu", {"in"}, {"x"}, "before").text(6, std::string(300, 'd')))
      .message(1, node_of("MatMul", {"x", "w"}, {"y"}, "/up/MatMul"))
      .message(1, node_of("Sigmoid", {"y"}, {"z"}, "after"))
      .message(5, weight)
      .message(5, raw_tensor("other", {5}))
      .message(12, value_of("z"));
}

}  // namespace

TEST_CASE("MatMulNBits in place of MatMul, all else byte for byte") {
  const std::string file = model_of(linear(raw_tensor("w", {64, 32})));
  const Outcome out = rewrite(file, int4_groups());
  CHECK(out.error == "");
  CHECK(onnx_rewrite_nodes_of(out.file) ==
        OnnxRewriteTexts{"Relu(in)>x", "MatMulNBits(x,w_Q4,w_scales)>y", "Sigmoid(y)>z"});
  CHECK(tensors_of(out.file) == OnnxRewriteTexts{"w_Q4", "w_scales", "other"});
  const auto model = read_onnx(out.file);
  REQUIRE(model->opsets.size() == 2);
  CHECK(model->opset() == 17);
  const onnx::Node& node = model->nodes[1];
  CHECK(node.domain == "com.microsoft");
  CHECK(node.find("K")->integer == 64);
  CHECK(node.find("N")->integer == 32);
  CHECK(node.find("bits")->integer == 4);
  CHECK(node.find("block_size")->integer == 32);
  CHECK(node.find("accuracy_level") == nullptr);
  CHECK(model->quantized_nodes == 1);
  for (const Message& kept : {node_of("Relu", {"in"}, {"x"}, "before").text(6, std::string(300, 'd')),
                              node_of("Sigmoid", {"y"}, {"z"}, "after"), raw_tensor("other", {5})})
    CHECK(out.file.find(kept.out) != std::string::npos);
  // What is quantized is left alone.
  CHECK(rewrite(out.file, int4_groups()).file == out.file);
}

TEST_CASE("without a chosen weight the file is unchanged") {
  const std::string file = model_of(linear(raw_tensor("w", {64, 32})));
  CHECK(rewrite(file, spec_of(Dtype::fp4, QScheme::per_group)).file == file);
}

TEST_CASE("Gemm keeps its bias; a weight with other uses stays") {
  Message gemm = node_of("Gemm", {"x", "w", "b"}, {"y"}, "g").message(5, attribute_of("transB", 1));
  const Message graph = Message().message(1, gemm).message(5, raw_tensor("w", {32, 64}));
  Outcome out = rewrite(model_of(graph), int4_groups());
  CHECK(onnx_rewrite_nodes_of(out.file) ==
        OnnxRewriteTexts{"MatMulNBits(x,w_Q4,w_scales)>y_product", "Add(y_product,b)>y"});
  CHECK(out.diagnostics.empty());

  const Message tied = Message(graph).message(1, node_of("Exp", {"w"}, {"t"}));
  out = rewrite(model_of(tied), int4_groups());
  CHECK(tensors_of(out.file) == OnnxRewriteTexts{"w_Q4", "w_scales", "w"});
  CHECK(out.diagnostics == OnnxRewriteTexts{"weight-kept-twice"});

  // alpha is not 1: only DequantizeLinear serves, which needs version 21 for four bits.
  gemm.message(5, Message().text(1, "alpha").bytes(std::string("\x15\0\0\0\x40", 5)).number(20, 1));
  out = rewrite(model_of(Message().message(1, gemm).message(5, raw_tensor("w", {32, 64}))), int4_groups());
  CHECK(onnx_rewrite_nodes_of(out.file) ==
        OnnxRewriteTexts{"DequantizeLinear(w_quantized,w_scale)>w", "Gemm(x,w,b)>y"});
  CHECK(out.opset == 21);
  CHECK(out.diagnostics == OnnxRewriteTexts{"opset-raised"});
  CHECK(read_onnx(out.file)->ir_version == 10);
}

TEST_CASE("embeddings, and names that are taken") {
  const Outcome out = rewrite(
      model_of(
          Message().message(1, node_of("Gather", {"w", "i"}, {"w_Q4"}, "e")).message(5, raw_tensor("w", {10, 64}))),
      spec_of(Dtype::uint4, QScheme::per_group));
  CHECK(onnx_rewrite_nodes_of(out.file) ==
        OnnxRewriteTexts{"Shape(i)>w_Q4_ids_shape", "Gather(w_Q4_,i)>w_Q4_codes", "Cast(w_Q4_codes)>w_Q4_codes_int32",
                         "Gather(w_Q4_codes_of_byte,w_Q4_codes_int32)>w_Q4_codes_unpacked",
                         "Concat(w_Q4_ids_shape,w_Q4_blocks_size)>w_Q4_blocks_shape",
                         "Reshape(w_Q4_codes_unpacked,w_Q4_blocks_shape)>w_Q4_codes_blocks",
                         "Gather(w_zero_points,i)>w_Q4_zero_point", "Cast(w_Q4_zero_point)>w_Q4_zero_point_cast",
                         "Sub(w_Q4_codes_blocks,w_Q4_zero_point_cast)>w_Q4_codes_centred",
                         "Gather(w_scales,i)>w_Q4_scale", "Mul(w_Q4_codes_centred,w_Q4_scale)>w_Q4_dequantized",
                         "Concat(w_Q4_ids_shape,w_Q4_row_size)>w_Q4_row_shape",
                         "Reshape(w_Q4_dequantized,w_Q4_row_shape)>w_Q4"});
  // What it has made is quantized again in nothing: scales and tables of values are no embeddings.
  for (const auto& weight : conversion::list_weights(*read_onnx(out.file))) CHECK(weight.kept != nullptr);
}

TEST_CASE("eight bits with a scale per channel or tensor: Cast, Sub and Mul, which a runtime computes once") {
  const std::string file = model_of(linear(raw_tensor("w", {64, 32})), 9);
  Outcome out = rewrite(file, spec_of(Dtype::int8, QScheme::per_channel));
  CHECK(onnx_rewrite_nodes_of(out.file) == OnnxRewriteTexts{"Cast(w_quantized)>w_quantized_cast",
                                                            "Mul(w_quantized_cast,w_scale)>w", "Relu(in)>x",
                                                            "MatMul(x,w)>y", "Sigmoid(y)>z"});
  CHECK(out.opset == 9);
  const auto model = read_onnx(out.file);
  for (const onnx::Tensor& tensor : model->tensors)
    if (tensor.name == "w_scale") CHECK(tensor.shape == std::vector<uint64_t>{1, 32});
  QuantizationSpec lopsided = spec_of(Dtype::uint8, QScheme::per_tensor);
  lopsided.symmetric = false;
  out = rewrite(file, lopsided);
  CHECK(onnx_rewrite_nodes_of(out.file)[1] == "Cast(w_zero_point)>w_zero_point_cast");
  CHECK(onnx_rewrite_nodes_of(out.file)[2] == "Sub(w_quantized_cast,w_zero_point_cast)>w_quantized_centred");
  // An accuracy level is MatMulNBits', and few bits are kept in memory.
  for (const auto& [dtype, style] : {std::pair{Dtype::int8, OnnxStyle::n_bits}, {Dtype::int4, OnnxStyle::weight_only}})
    CHECK(onnx_rewrite_nodes_of(rewrite(file, spec_of(dtype, QScheme::per_channel), style).file)[1].starts_with(
        "MatMulNBits(x,w_Q"));
}

TEST_CASE("DequantizeLinear under the weight's own name, for Constants in branches too") {
  const auto branch = [](std::string_view output) {
    return Message()
        .message(1, constant_of("k", raw_tensor("", {8, 3, 3})))
        .message(1, node_of("Conv", {"x", "k"}, {std::string(output)}));
  };
  Message choice = node_of("If", {"c"}, {"y"});
  choice.message(5, Message().text(1, "then_branch").message(6, branch("a")).number(20, 5));
  choice.message(5, Message().text(1, "else_branch").message(6, branch("b")).number(20, 5));
  const Outcome out = rewrite(model_of(Message().message(1, choice)), spec_of(Dtype::int8, QScheme::per_channel),
                              OnnxStyle::dequantize_linear);
  CHECK(onnx_rewrite_nodes_of(out.file) == OnnxRewriteTexts{"If(c)>y", "DequantizeLinear(k_quantized,k_scale)>k",
                                                            "Conv(x,k)>a", "DequantizeLinear(k_quantized_,k_scale_)>k",
                                                            "Conv(x,k)>b"});
  const auto model = read_onnx(out.file);
  for (const onnx::Tensor& tensor : model->tensors) CHECK(tensor.graph > 0);
  CHECK(model->nodes[1].find("axis")->integer == 0);
  CHECK(out.opset == 17);
}

TEST_CASE("an initializer of an old file is removed with its input") {
  const Message graph = linear(raw_tensor("w", {64, 32})).message(11, value_of("w")).message(11, value_of("in"));
  const Outcome out = rewrite(model_of(graph, 17, 3), int4_groups());
  const auto model = read_onnx(out.file);
  REQUIRE(model);
  REQUIRE(model->graphs[0].inputs.size() == 1);
  CHECK(model->graphs[0].inputs[0].name == "in");
  CHECK_FALSE(conversion::list_weights(*read_onnx(model_of(graph, 17, 3)))[0].is_input);
  // In newer files it is a default that a caller may replace.
  CHECK(conversion::list_weights(*read_onnx(model_of(graph, 17, 8)))[0].is_input);
}

TEST_CASE("inputs quantized at run time: once for all nodes that share them") {
  Message conv = node_of("Conv", {"x", "c", "bias"}, {"v"}, "conv").message(5, attribute_of("group", 1));
  const Outcome out = rewrite(model_of(Message()
                                           .message(1, node_of("MatMul", {"x", "w"}, {"y"}, "a"))
                                           .message(1, node_of("MatMul", {"x", "u"}, {"z"}, "b"))
                                           .message(1, conv)
                                           .message(5, raw_tensor("w", {8, 8}))
                                           .message(5, raw_tensor("u", {8, 8}))
                                           .message(5, raw_tensor("c", {8, 3, 3, 3}))),
                              spec_of(Dtype::int8, QScheme::per_channel), OnnxStyle::dynamic);
  CHECK(onnx_rewrite_nodes_of(out.file) ==
        OnnxRewriteTexts{"DynamicQuantizeLinear(x)>x_quantized>x_scale>x_zero_point",
                         "MatMulInteger(x_quantized,w_quantized,x_zero_point)>y_output_quantized",
                         "Cast(y_output_quantized)>y_output_cast", "Mul(x_scale,w_scale)>y_output_scale",
                         "Mul(y_output_cast,y_output_scale)>y",
                         "MatMulInteger(x_quantized,u_quantized,x_zero_point)>z_output_quantized",
                         "Cast(z_output_quantized)>z_output_cast", "Mul(x_scale,u_scale)>z_output_scale",
                         "Mul(z_output_cast,z_output_scale)>z",
                         "ConvInteger(x_quantized,c_quantized,x_zero_point,c_zero_point)>v_output_quantized",
                         "Cast(v_output_quantized)>v_output_cast", "Mul(x_scale,c_scale)>v_output_scale",
                         "Mul(v_output_cast,v_output_scale)>v_product", "Reshape(bias,v_bias_shape)>v_bias_reshaped",
                         "Add(v_product,v_bias_reshaped)>v"});
  const auto model = read_onnx(out.file);
  REQUIRE(model);
  CHECK(model->nodes[9].find("group")->integer == 1);
}

TEST_CASE("external data: embedded if they fit, written to a file if they do not") {
  const std::string file = model_of(linear(external_tensor("w", {64, 32}, "old.bin", "64"))
                                        .message(5, external_tensor("kept", {20, 20}, "old.bin", "8256"))
                                        .message(5, raw_tensor("inside", {30, 30})));
  std::string external(64, 'x');
  external += floats(ramp(64 * 32)) + floats(ramp(400));
  const Outcome inside = rewrite(file, int4_groups(), OnnxStyle::weight_only, {}, external);
  CHECK(inside.error == "");
  CHECK(inside.data.empty());
  CHECK(inside.file.find(floats(ramp(400))) != std::string::npos);
  CHECK(read_onnx(inside.file)->locations.empty());

  conversion::OnnxOptions options;
  options.largest_model = 2000;
  CHECK(rewrite(file, int4_groups(), OnnxStyle::weight_only, options, external).error.find("needs a file") !=
        std::string::npos);
  options.data_file = "new.onnx_data";
  const Outcome outside = rewrite(file, int4_groups(), OnnxStyle::weight_only, options, external);
  const auto model = read_onnx(outside.file);
  REQUIRE_MESSAGE(model, model.error().message);
  REQUIRE(model->locations.size() == 1);
  CHECK(model->locations[0] == "new.onnx_data");
  CHECK(onnx::check_external(*model, "new.onnx_data", outside.data.size()));
  uint32_t moved = 0;
  for (const onnx::Tensor& tensor : model->tensors) {
    if (!tensor.is_external()) continue;
    ++moved;
    CHECK(tensor.begin % 4096 == 0);
    const std::string bytes = outside.data.substr(tensor.begin, tensor.end - tensor.begin);
    if (tensor.name == "w_Q4") CHECK(bytes == std::string(64 * 32 / 2, '\xC0'));
    if (tensor.name == "kept") CHECK(bytes == floats(ramp(400)));
    if (tensor.name == "inside") CHECK(bytes == floats(ramp(900)));
  }
  CHECK(moved == 3);
}

TEST_CASE("older operators: attributes become inputs, others are refused by name") {
  const auto with = [](const Message& node, uint64_t opset) {
    return rewrite(model_of(Message()
                                .message(1, node)
                                .message(1, node_of("MatMul", {"x", "w"}, {"y"}, "m"))
                                .message(5, raw_tensor("w", {64, 32})),
                            opset),
                   spec_of(Dtype::int8, QScheme::per_channel), OnnxStyle::dequantize_linear);
  };
  Message squeeze = node_of("Squeeze", {"in"}, {"x"}, "s");
  squeeze.message(5, Message().text(1, "axes").text(8, std::string("\1\2", 2)).number(20, 7));
  Outcome out = with(squeeze, 11);
  CHECK(onnx_rewrite_nodes_of(out.file)[1] == "Squeeze(in,x_axes)>x");
  CHECK(out.opset == 13);
  const auto model = read_onnx(out.file);
  for (const onnx::Tensor& tensor : model->tensors)
    if (tensor.name == "x_axes")
      CHECK(out.file.substr(tensor.begin, tensor.end - tensor.begin) ==
            std::string("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16));

  Message clip = node_of("Clip", {"in"}, {"x"}, "c");
  clip.message(5, Message().text(1, "max").bytes(std::string("\x15\0\0\xc0\x40", 5)).number(20, 1));
  CHECK(onnx_rewrite_nodes_of(with(clip, 10).file)[1] == "Clip(in,,x_max)>x");
  CHECK(onnx_rewrite_nodes_of(with(node_of("Softmax", {"in"}, {"x"}, "s"), 12).file) ==
        OnnxRewriteTexts{"DequantizeLinear(w_quantized,w_scale)>w", "Shape(in)>x_shape", "Flatten(in)>x_matrix",
                         "Softmax(x_matrix)>x_flat", "Reshape(x_flat,x_shape)>x", "MatMul(x,w)>y"});
  CHECK(onnx_rewrite_nodes_of(
            with(node_of("Softmax", {"in"}, {"x"}, "s").message(5, attribute_of("axis", -1)), 12).file)[1] ==
        "Softmax(in)>x");
  CHECK(with(node_of("Resize", {"in", "s"}, {"x"}, "r"), 10).error.find("Resize") != std::string::npos);
  CHECK(with(squeeze, 8).error.find("Export the model again") != std::string::npos);
}

TEST_CASE("properties are added, in place of the model's own of the same key") {
  const auto property = [](std::string_view key, std::string_view value) {
    return Message().text(1, key).text(2, value);
  };
  std::string file =
      model_of(Message().message(1, node_of("MatMul", {"x", "w"}, {"y"})).message(5, raw_tensor("w", {64, 32})));
  file += Message().message(14, property("tool", "1")).message(14, property("toolbox", "2")).out;
  conversion::OnnxOptions options;
  options.properties.emplace_back("tool", "3");
  const Outcome out = rewrite(file, int4_groups(), OnnxStyle::weight_only, options);
  const auto model = read_onnx(out.file);
  REQUIRE(model);
  std::vector<std::string> found;
  for (onnx::Fields f(*model->skeleton, {0, out.file.size()}); f.next();)
    if (f.field.number == 14) found.emplace_back(model->skeleton->text(f.field.payload));
  CHECK(found == std::vector{property("tool", "3").out, property("toolbox", "2").out});
}

TEST_CASE("edits that overlap are an error, edits that touch are not") {
  const std::string file =
      model_of(Message().message(1, node_of("Relu", {"x"}, {"y"})).message(1, node_of("Relu", {"y"}, {"z"})));
  const auto model = read_onnx(file);
  REQUIRE(model);
  const onnx::Range first = model->nodes[0].whole, second = model->nodes[1].whole, graph = model->graphs[0].whole;
  REQUIRE(first.end == second.begin);
  const auto bytes_with = [&](const std::vector<onnx::Range>& replaced) -> Result<uint64_t> {
    conversion::Edits edits(*model->skeleton);
    edits.open(graph);
    for (const onnx::Range& range : replaced) edits.replace(range, {});
    std::string literals;
    auto out = edits.apply(literals);
    if (!out) return std::move(out.error());
    return out->bytes();
  };
  CHECK(*bytes_with({}) == file.size());
  CHECK(*bytes_with({second, first}) == file.size() - first.bytes() - second.bytes());
  CHECK(*bytes_with({first, {first.begin, first.begin}}) == file.size() - first.bytes());
  for (const auto& wrong : {std::vector{first, first}, std::vector{first, onnx::Range{first.begin + 2, first.end}},
                            std::vector{onnx::Range{first.begin, second.begin + 2}, second},
                            std::vector{onnx::Range{second.begin, file.size()}}}) {
    const auto refused = bytes_with(wrong);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::format_unsupported);
    CHECK(refused.error().where.starts_with("byte "));
  }
}

TEST_CASE("operators with a graph that they cannot have stay unchanged, but weights in it are quantized") {
  const auto holding = [](Message node) {
    const Message inside = Message()
                               .message(1, constant_of("k", raw_tensor("", {64, 32})))
                               .message(1, node_of("MatMul", {"x", "k"}, {"a"}))
                               .message(12, value_of("a"));
    return node.message(5, Message().text(1, "then_branch").message(6, inside).number(20, 5));
  };
  for (const OnnxStyle style : {OnnxStyle::weight_only, OnnxStyle::dequantize_linear, OnnxStyle::dynamic}) {
    const auto with = [&](const Message& node, uint64_t opset) {
      return rewrite(model_of(Message().message(1, node).message(5, raw_tensor("w", {64, 32})), opset),
                     spec_of(Dtype::int8, QScheme::per_channel), style);
    };
    const Outcome product = with(holding(node_of("MatMul", {"x", "w"}, {"y"}, "m")), 21);
    CHECK(product.error == "");
    CHECK(onnx_rewrite_nodes_of(product.file)[0] == "MatMul(x,w)>y");
    CHECK(read_onnx(product.file)->quantized_nodes > 0);
    CHECK(onnx_rewrite_nodes_of(with(holding(node_of("BatchNormalization", {"x", "w"}, {"y"}, "n")), 21).file)[0] ==
          "BatchNormalization(x,w)>y");
    CHECK(read_onnx(model_of(Message().message(1, holding(node_of("Constant", {}, {"c"})))))
              .error()
              .message.find("holds a graph") != std::string::npos);
  }
  CHECK(rewrite(model_of(Message().message(1, holding(node_of("Softmax", {"in"}, {"y"}, "s"))), 12),
                spec_of(Dtype::int8, QScheme::per_channel), OnnxStyle::dequantize_linear)
            .error.find("what Softmax means") != std::string::npos);
}

TEST_CASE("weights and their layers") {
  const auto model =
      read_onnx(model_of(Message()
                             .message(1, node_of("MatMul", {"x", "w"}, {"y"}, "/model/layers.0/up/MatMul"))
                             .message(1, node_of("Gemm", {"y", "head.weight"}, {"z"}))
                             .message(1, node_of("MatMul", {"x", "batched"}, {"v"}))
                             .message(1, node_of("Gather", {"out", "i"}, {"e"}))
                             .message(1, node_of("QuantizeLinear", {"aware", "s"}, {"q"}))
                             .message(1, node_of("Conv", {"x", "aware"}, {"a"}))
                             .message(5, raw_tensor("w", {4, 6}))
                             .message(5, raw_tensor("head.weight", {4, 6}))
                             .message(5, raw_tensor("batched", {2, 4, 6}))
                             .message(5, raw_tensor("out", {4, 6}))
                             .message(5, raw_tensor("aware", {4, 6, 1}))
                             .message(12, value_of("out"))));
  REQUIRE(model);
  const auto weights = conversion::list_weights(*model);
  REQUIRE(weights.size() == 5);
  CHECK(weights[0].layer == "model.layers.0.up");
  CHECK(weights[0].is_input_major);
  CHECK(weights[0].kept == nullptr);
  CHECK(weights[1].layer == "head");
  CHECK(std::string_view(weights[3].layer_type) == "Embedding");
  CHECK(std::string_view(weights[4].layer_type) == "Conv1d");
  CHECK(weights[2].is_batch);
  for (size_t i = 3; i < 5; ++i) CHECK(weights[i].kept != nullptr);
  CHECK_FALSE(conversion::onnx_form_of(*model, weights[4], int4_groups(), OnnxStyle::weight_only));
}
