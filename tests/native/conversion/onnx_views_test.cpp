// Weights that reach their layers through other nodes, and what of these nodes is left.
#include <doctest/doctest.h>

#include <deque>

#include "formats/onnx/onnx_einsum.h"
#include "formats/onnx_bytes.h"
#include "onnx_graph/onnx_rewrite.h"

using namespace wasmquant;
using namespace test_files;
using conversion::OnnxStyle;
using conversion::Segment;

namespace {

constexpr uint64_t kFloat16 = 10;

Message views_half_tensor(std::string_view name, std::vector<uint64_t> shape) {
  uint64_t count = 1;
  for (const uint64_t d : shape) count *= d;
  return tensor_of(name, std::move(shape), kFloat16).text(9, std::string(count * 2, '\x20'));
}
Message views_integers(std::string_view name, std::vector<int64_t> values) {
  std::string bytes;
  for (const int64_t value : values)
    for (int byte = 0; byte < 8; ++byte) bytes += static_cast<char>(static_cast<uint64_t>(value) >> (8 * byte) & 0xFF);
  return tensor_of(name, {values.size()}, 7).text(9, bytes);
}

struct ViewsOutcome {
  std::vector<std::string> nodes;  // "MatMulNBits(x,w_Q4,w_scales)>y"
  std::vector<std::string> tensors;
  std::vector<std::string> diagnostics;
  std::vector<conversion::OnnxModelWeight> weights;
};

QuantizationSpec views_int4() {
  QuantizationSpec spec;
  spec.dtype = Dtype::int4;
  spec.qscheme = QScheme::per_group;
  spec.group_size = 32;
  spec.ch_axis = 1;
  return spec;
}
QuantizationSpec views_channels() {
  QuantizationSpec spec;
  spec.dtype = Dtype::int8;
  spec.qscheme = QScheme::per_channel;
  return spec;
}

ViewsOutcome views_quantized(const Message& graph, const QuantizationSpec& spec,
                             OnnxStyle style = OnnxStyle::weight_only) {
  const std::string file = model_of(graph, 21, 10);
  const auto model = read_onnx(file);
  REQUIRE_MESSAGE(model, model.error().message);
  std::deque<WeightLayout> layouts;
  std::vector<conversion::OnnxChoice> choices;
  const auto weights = conversion::list_weights(*model);
  for (const auto& weight : weights) {
    const auto form = conversion::onnx_form_of(*model, weight, spec, style);
    REQUIRE_MESSAGE(form, form.error().message);
    auto layout = onnx_layout(*form, conversion::describe(*model, weight, *form), spec);
    REQUIRE_MESSAGE(layout, layout.error().message);
    layouts.push_back(std::move(*layout));
    choices.push_back({weight.tensor, *form, &layouts.back(), &weight, {}, {}});
  }
  DiagnosticList diagnostics;
  const auto rewritten = conversion::rewrite_onnx(*model, choices, {}, diagnostics);
  REQUIRE_MESSAGE(rewritten, rewritten.error().message);
  std::string out;
  for (const Segment& segment : rewritten->model.segments) {
    const auto begin = static_cast<size_t>(segment.begin), bytes = static_cast<size_t>(segment.bytes);
    if (segment.kind == Segment::Kind::literal) out.append(rewritten->literals, begin, bytes);
    if (segment.kind == Segment::Kind::model) out.append(file, begin, bytes);
    if (segment.kind == Segment::Kind::component) out.append(bytes, '\0');
  }
  ViewsOutcome found;
  found.weights.assign(weights.begin(), weights.end());
  for (const Diagnostic& diagnostic : diagnostics.items())
    found.diagnostics.push_back(std::string(diagnostic.code.name()));
  const auto again = read_onnx(out);
  REQUIRE_MESSAGE(again, again.error().message);
  for (const onnx::Node& node : again->nodes) {
    std::string text = std::string(node.op_type) + "(";
    for (const std::string_view input : node.inputs) (text += text.back() == '(' ? "" : ",") += input;
    text += ")";
    for (const std::string_view output : node.outputs) (text += ">") += output;
    found.nodes.push_back(text);
  }
  for (const onnx::Tensor& tensor : again->tensors) found.tensors.emplace_back(tensor.name);
  return found;
}

using ViewsTexts = std::vector<std::string>;

}  // namespace

TEST_CASE("views: Identity, Transpose, Cast and Reshape before a product are applied to the weight") {
  const Message graph = Message()
                            .message(1, node_of("Identity", {"w"}, {"a"}))
                            .message(1, node_of("Cast", {"a"}, {"b"}).message(5, attribute_of("to", 1)))
                            .message(1, node_of("Reshape", {"b", "shape"}, {"c"}))
                            .message(1, node_of("Transpose", {"c"}, {"d"}))
                            .message(1, node_of("MatMul", {"x", "d"}, {"y"}, "/up/MatMul"))
                            .message(5, views_half_tensor("w", {4, 8, 64}))
                            .message(5, views_integers("shape", {-1, 64}));
  const ViewsOutcome blocks = views_quantized(graph, views_int4());
  CHECK(blocks.nodes == ViewsTexts{"MatMulNBits(x,w_Q4,w_scales)>y"});
  CHECK(blocks.tensors == ViewsTexts{"w_Q4", "w_scales", "shape"});
  REQUIRE(blocks.weights.size() == 1);
  CHECK(blocks.weights[0].layer == "up");
  CHECK(blocks.weights[0].shape == std::vector<uint64_t>{32, 64});
  CHECK_FALSE(blocks.weights[0].is_input_major);
  CHECK(blocks.weights[0].data_type == 1);
  // All nodes give way, and the codes are stored as the product reads them.
  CHECK(views_quantized(graph, views_channels(), OnnxStyle::dequantize_linear).nodes ==
        ViewsTexts{"DequantizeLinear(w_quantized,w_scale)>d", "MatMul(x,d)>y"});
  CHECK(views_quantized(graph, views_channels(), OnnxStyle::dynamic).nodes[1] ==
        "MatMulInteger(x_quantized,w_quantized,x_zero_point)>y_output_quantized");
}

TEST_CASE("views: a value that another node reads is dequantized, too, in the tensor's own type") {
  const Message graph = Message()
                            .message(1, node_of("Transpose", {"w"}, {"a"}))
                            .message(1, node_of("Cast", {"a"}, {"b"}).message(5, attribute_of("to", 1)))
                            .message(1, node_of("Gemm", {"x", "b"}, {"y"}))
                            .message(5, views_half_tensor("w", {32, 64}));
  CHECK(views_quantized(graph, views_channels(), OnnxStyle::dequantize_linear).nodes ==
        ViewsTexts{"DequantizeLinear(w_quantized,w_scale)>b", "Gemm(x,b)>y"});
  const ViewsOutcome out = views_quantized(Message(graph).message(1, node_of("Exp", {"a"}, {"e"})), views_channels(),
                                           OnnxStyle::dequantize_linear);
  CHECK(out.nodes == ViewsTexts{"DequantizeLinear(w_quantized,w_scale)>w", "Transpose(w)>a", "Cast(a)>b", "Gemm(x,b)>y",
                                "Exp(a)>e"});
  CHECK(out.diagnostics.empty());
}

TEST_CASE("views: a view with another reader stays, and so does its weight") {
  const Message chain = Message()
                            .message(1, node_of("Identity", {"w"}, {"a"}))
                            .message(1, node_of("Transpose", {"a"}, {"b"}))
                            .message(1, node_of("MatMul", {"x", "b"}, {"y"}))
                            .message(5, raw_tensor("w", {32, 64}));
  ViewsOutcome out = views_quantized(Message(chain).message(1, node_of("Exp", {"a"}, {"e"})), views_int4());
  CHECK(out.nodes == ViewsTexts{"Identity(w)>a", "MatMulNBits(x,w_Q4,w_scales)>y", "Exp(a)>e"});
  CHECK(out.diagnostics == ViewsTexts{"weight-kept-twice"});
  out = views_quantized(Message(chain).message(12, value_of("b")), views_int4());
  CHECK(out.nodes == ViewsTexts{"Identity(w)>a", "Transpose(a)>b", "MatMulNBits(x,w_Q4,w_scales)>y"});
  CHECK(out.diagnostics == ViewsTexts{"weight-kept-twice"});
}

TEST_CASE("views: a Gather shares the codes of the head that is tied to it") {
  const auto tied = [](std::vector<uint64_t> shape) {
    return Message()
        .message(1, node_of("Gather", {"w", "i"}, {"e"}, "/embed/Gather"))
        .message(1, node_of("Transpose", {"w"}, {"t"}))
        .message(1, node_of("MatMul", {"e", "t"}, {"y"}, "/head/MatMul"))
        .message(5, raw_tensor("w", std::move(shape)));
  };
  const ViewsOutcome out = views_quantized(tied({40, 64}), views_int4());
  CHECK(out.nodes == ViewsTexts{"Shape(i)>e_ids_shape", "Gather(w_Q4,i)>e_codes", "Cast(e_codes)>e_codes_int32",
                                "Gather(e_codes_of_byte,e_codes_int32)>e_codes_unpacked",
                                "Concat(e_ids_shape,e_blocks_size)>e_blocks_shape",
                                "Reshape(e_codes_unpacked,e_blocks_shape)>e_codes_blocks",
                                "Reshape(w_scales,e_scales_columns_shape)>e_scales_columns",
                                "Gather(e_scales_columns,i)>e_scale", "Mul(e_codes_blocks,e_scale)>e_dequantized",
                                "Concat(e_ids_shape,e_row_size)>e_row_shape", "Reshape(e_dequantized,e_row_shape)>e",
                                "MatMulNBits(e,w_Q4,w_scales)>y"});
  CHECK(out.diagnostics.empty());
  CHECK(out.weights[0].layer == "head");
  CHECK(out.weights[0].embedding == "embed");
  // The padding of rows is cut off.
  const ViewsOutcome padded = views_quantized(tied({40, 48}), views_int4());
  CHECK(padded.diagnostics.empty());
  CHECK(padded.nodes[10] == "Gather(e_padded,e_row_columns)>e_row_unpadded");
}

TEST_CASE("views: other shapes and orders do not count as views") {
  const auto permuted = [](std::vector<uint64_t> axes) {
    Message perm = Message().text(1, "perm");
    for (const uint64_t axis : axes) perm.number(8, axis);
    return node_of("Transpose", {"w"}, {"t"}).message(5, perm);
  };
  const auto weights_of = [](const Message& node, std::vector<uint64_t> shape) {
    const auto model = read_onnx(model_of(Message()
                                              .message(1, node)
                                              .message(1, node_of("MatMul", {"x", "t"}, {"y"}))
                                              .message(5, raw_tensor("w", std::move(shape)))
                                              .message(5, views_integers("shape", {8, -1}))
                                              .message(5, views_integers("wrong", {3, -1}))
                                              .message(5, views_integers("axis", {2}))
                                              .message(5, views_integers("zeros", {0, 0}))));
    REQUIRE_MESSAGE(model, model.error().message);
    return conversion::list_weights(*model).size();
  };
  CHECK(weights_of(node_of("Reshape", {"w", "shape"}, {"t"}), {4, 16}) == 1);
  CHECK(weights_of(node_of("Reshape", {"w", "zeros"}, {"t"}), {4, 16}) == 1);
  CHECK(weights_of(node_of("Reshape", {"w", "zeros"}, {"t"}).message(5, attribute_of("allowzero", 1)), {4, 16}) == 0);
  CHECK(weights_of(node_of("Reshape", {"w", "wrong"}, {"t"}), {4, 16}) == 0);
  CHECK(weights_of(node_of("Reshape", {"w", "x"}, {"t"}), {4, 16}) == 0);
  CHECK(weights_of(node_of("Transpose", {"w"}, {"t"}), {2, 4, 8}) == 0);
  CHECK(weights_of(permuted({1, 0, 2}), {2, 4, 8}) == 0);
  CHECK(weights_of(permuted({0, 2, 1}), {2, 4, 8}) == 1);
  CHECK(weights_of(permuted({0, 2, 2}), {2, 4, 8}) == 0);
  CHECK(weights_of(permuted({0, 3, 1}), {2, 4, 8}) == 0);
  CHECK(weights_of(permuted({0, 1}), {2, 4, 8}) == 0);
  CHECK(weights_of(permuted({1, 0, 2}), {1, 4, 8}) == 1);
  CHECK(weights_of(permuted({2, 0, 1}), {4, 8, 1}) == 1);
  CHECK(weights_of(node_of("Flatten", {"w"}, {"t"}), {4, 2, 8}) == 1);
  CHECK(weights_of(node_of("Flatten", {"w"}, {"t"}).message(5, attribute_of("axis", 9)), {4, 2, 8}) == 0);
  CHECK(weights_of(node_of("Squeeze", {"w"}, {"t"}), {1, 4, 1, 8}) == 1);
  CHECK(weights_of(node_of("Squeeze", {"w", "axis"}, {"t"}), {4, 8, 1}) == 1);
  CHECK(weights_of(node_of("Squeeze", {"w", "axis"}, {"t"}), {4, 8, 2}) == 0);
  CHECK(weights_of(node_of("Squeeze", {"w", "x"}, {"t"}), {4, 8, 1}) == 0);
  CHECK(weights_of(node_of("Unsqueeze", {"w", "axis"}, {"t"}), {4, 8}) == 1);
  CHECK(weights_of(node_of("Unsqueeze", {"w", "shape"}, {"t"}), {4, 8}) == 0);
  CHECK(weights_of(node_of("Unsqueeze", {"w"}, {"t"}), {4, 8}) == 0);
  CHECK(weights_of(node_of("Cast", {"w"}, {"t"}).message(5, attribute_of("to", 6)), {4, 16}) == 0);
  CHECK(weights_of(node_of("Relu", {"w"}, {"t"}), {4, 16}) == 0);
  const auto why = [](const Message& graph) {
    const auto model = read_onnx(model_of(graph));
    return conversion::reason_no_weight(*model, model->tensors[0]);
  };
  Message other = node_of("Lin", {"x", "w"}, {"y"});
  other.text(7, "local");
  CHECK(why(Message().message(1, other).message(5, raw_tensor("w", {4, 4}))) ==
        "Lin of local reads it, and constants of that operator are not quantized");
  CHECK(why(Message()
                .message(1, node_of("Identity", {"w"}, {"t"}))
                .message(1, node_of("Einsum", {"x", "t"}, {"y"}))
                .message(5, raw_tensor("w", {4, 4}))) ==
        "Einsum reads it in an equation that is not a product with a matrix or a batch of matrices");
  Message equation = Message().text(1, "equation").text(4, "bi,ihk->bhk");
  CHECK(why(Message()
                .message(1, node_of("Einsum", {"x", "w"}, {"y"}).message(5, equation))
                .message(5, raw_tensor("w", {4, 4, 4}))) ==
        "Einsum reads it in an equation that is not a product with a matrix or a batch of matrices");
  CHECK(why(Message().message(1, node_of("Transpose", {"w"}, {"t"})).message(5, raw_tensor("w", {2, 3, 4})))
            .starts_with("Transpose reorders its elements"));
  CHECK(why(Message().message(1, node_of("Unsqueeze", {"w"}, {"t"})).message(5, raw_tensor("w", {2, 4})))
            .starts_with("Unsqueeze has no constant axes"));
  CHECK(why(Message().message(5, raw_tensor("w", {4, 4}))) == "no node reads it");
}

TEST_CASE("Einsum: operands that are weights of products, and their order") {
  using onnx::einsum_use;
  using onnx::Use;
  CHECK(einsum_use("bij,jk->bik", 1) == Use::einsum_in_out);
  CHECK(einsum_use("bij,kj->bik", 1) == Use::einsum_out_in);
  CHECK(einsum_use("...j, j k -> ...k", 1) == Use::einsum_in_out);
  CHECK(einsum_use("oi,bi->bo", 0) == Use::einsum_out_in);
  CHECK(einsum_use("bij,bjk->bik", 1) == Use::einsum_in_out);
  CHECK(einsum_use("hbij,hbkj->bhik", 1) == Use::einsum_out_in);
  for (const char* other :
       {"", "bij,jk", "bij,jk,k->bi", "jk->kj", "bij,jj->bi", "bij,bj->bi", "bij,jkl->bikl", "bij,j->bi", "ij,bjk->bik",
        "bij,bjk->ik", "bij,jbk->bik", "bij,j...->bi", "bij,jk->bijk", "bij,jk->bi"})
    CHECK_MESSAGE(einsum_use(other, 1) == Use::other, other);
  CHECK(einsum_use("bij,jk->bik", 2) == Use::other);
}
