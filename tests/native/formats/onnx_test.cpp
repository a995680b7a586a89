// ONNX models: which tensors are found, and which models are refused.
#include "formats/onnx/onnx.h"

#include <doctest/doctest.h>

#include "formats/onnx_bytes.h"

using namespace wasmquant;
using namespace test_files;
using onnx::Use;

namespace {

const onnx::Tensor* find(const onnx::Model& model, std::string_view name) {
  for (const onnx::Tensor& tensor : model.tensors)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

// Why a model is refused; empty: it is not.
std::string refusal(const std::string& file) {
  const auto model = read_onnx(file);
  return model ? "" : model.error().message;
}
std::string refusal_of_tensor(const Message& tensor) { return refusal(model_of(Message().message(5, tensor))); }

Message linear_graph() {
  return Message()
      .message(1, node_of("MatMul", {"x", "w"}, {"y"}, "/layers.0/up/MatMul"))
      .message(5, raw_tensor("w", {64, 32}))
      .message(11, value_of("x"))
      .message(12, value_of("y"));
}

}  // namespace

TEST_CASE("a weight is found without its values being read") {
  const std::string file = model_of(
      linear_graph().message(5, raw_tensor("large", {300, 1000})).message(1, node_of("Gather", {"large", "i"}, {"e"})));
  for (uint32_t seed = 0; seed < 20; ++seed) {
    uint64_t fed = 0;
    const auto model = read_onnx(file, seed, &fed);
    REQUIRE_MESSAGE(model, model.error().message);
    CHECK(fed < 20'000);  // of 1.2 MB
    CHECK(model->opset() == 17);
    CHECK(model->ir_version == 8);
    const onnx::Tensor* weight = find(*model, "w");
    REQUIRE(weight != nullptr);
    CHECK(weight->shape == std::vector<uint64_t>{64, 32});
    CHECK(weight->encoding == onnx::Encoding::bytes);
    CHECK(file.substr(weight->begin, weight->end - weight->begin) == floats(ramp(64 * 32)));
    REQUIRE(weight->consumers.size() == 1);
    CHECK(weight->consumers[0].use == Use::mat_mul);
    CHECK(find(*model, "large")->consumers[0].use == Use::gather);
    CHECK(model->has_name("y"));
    CHECK_FALSE(model->has_name("z"));
  }
}

TEST_CASE("values in every place that can hold them") {
  std::string halves, packed;
  for (int i = 0; i < 12; ++i) protobuf::append_varint(halves, 0x3C00 + i);
  for (int i = 0; i < 6; ++i) protobuf::append_varint(packed, 7);
  Message scattered = tensor_of("scattered", {2, 2});
  for (int i = 0; i < 4; ++i) scattered.bytes(std::string("\x25\0\0\x80\x3f", 5));
  const auto model =
      read_onnx(model_of(Message()
                             .message(5, tensor_of("floats", {3, 4}).text(4, floats(ramp(12))))
                             .message(5, tensor_of("halves", {3, 4}, 10).text(5, halves))
                             .message(5, scattered)
                             .message(5, tensor_of("nothing", {0, 7}))
                             .message(5, tensor_of("int4", {3, 4}, 22).text(5, packed))
                             .message(5, tensor_of("packed dims", {}).text(1, "\3\4").text(9, floats(ramp(12))))
                             .message(5, external_tensor("outside", {3, 4}, "sub/w.bin", "4096"))));
  REQUIRE_MESSAGE(model, model.error().message);
  CHECK(find(*model, "floats")->encoding == onnx::Encoding::bytes);
  CHECK(find(*model, "halves")->encoding == onnx::Encoding::varints);
  CHECK(find(*model, "scattered")->encoding == onnx::Encoding::scattered);
  CHECK(find(*model, "nothing")->encoding == onnx::Encoding::none);
  CHECK(find(*model, "int4")->encoding == onnx::Encoding::varints);
  CHECK(find(*model, "packed dims")->shape == std::vector<uint64_t>{3, 4});
  const onnx::Tensor& outside = *find(*model, "outside");
  CHECK(outside.location == "sub/w.bin");
  CHECK(outside.begin == 4096);
  CHECK(outside.end == 4096 + 48);
  REQUIRE(model->locations.size() == 1);
  CHECK(onnx::check_external(*model, "sub/w.bin", 4144));
  CHECK_FALSE(onnx::check_external(*model, "sub/w.bin", 4143));

  std::vector<uint16_t> bits(12);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(halves.data()), halves.size());
  CHECK(onnx::decode_varints(bytes, bits, "halves"));
  CHECK(bits[11] == 0x3C0B);
  CHECK_FALSE(onnx::decode_varints(bytes.first(bytes.size() - 1), bits, "halves"));
  CHECK_FALSE(onnx::decode_varints(bytes, std::span(bits).first(11), "halves"));
}

TEST_CASE("weights in Constants and in graphs inside nodes; names of sibling graphs are their own") {
  const auto branch = [](std::string_view output) {
    return Message()
        .message(1, constant_of("k", raw_tensor("", {4, 4})))
        .message(1, node_of("MatMul", {"x", "k"}, {"t"}))
        .message(1, node_of("MatMul", {"t", "shared"}, {std::string(output)}))
        .message(12, value_of(output));
  };
  Message choice = node_of("If", {"c"}, {"y"});
  choice.message(5, Message().text(1, "then_branch").message(6, branch("a")).number(20, 5));
  choice.message(5, Message().text(1, "else_branch").message(6, branch("b")).number(20, 5));
  const auto model = read_onnx(model_of(Message()
                                            .message(1, choice)
                                            .message(1, node_of("Gemm", {"y", "shared"}, {"z"}))
                                            .message(5, raw_tensor("shared", {4, 4}))));
  REQUIRE_MESSAGE(model, model.error().message);
  REQUIRE(model->graphs.size() == 3);
  CHECK(model->graphs[0].last == 2);
  CHECK(model->graphs[2].parent == 0);
  REQUIRE(model->tensors.size() == 3);
  for (const onnx::Tensor& tensor : model->tensors) {
    if (tensor.name != "k") continue;
    CHECK(tensor.graph > 0);
    REQUIRE(tensor.consumers.size() == 1);
    CHECK(model->nodes[tensor.consumers[0].node].graph == tensor.graph);
  }
  CHECK(find(*model, "shared")->consumers.size() == 3);
}

TEST_CASE("quantized models are recognised") {
  const auto model =
      read_onnx(model_of(Message()
                             .message(1, node_of("DequantizeLinear", {"q", "s"}, {"w"}))
                             .message(1, node_of("MatMul", {"x", "w"}, {"y"}))
                             .message(1, node_of("MatMulNBits", {"y", "b", "scales"}, {"z"}).text(7, "com.microsoft"))
                             .message(5, raw_tensor("s", {4, 4}))
                             .message(5, raw_tensor("scales", {4, 4}))
                             .message(5, tensor_of("q", {4, 4}, 3).text(9, std::string(16, '\1')))));
  REQUIRE(model);
  CHECK(model->quantized_nodes == 2);
  CHECK(find(*model, "s")->consumers[0].use == Use::quantized);
  CHECK(find(*model, "scales")->consumers[0].use == Use::quantized);
}

TEST_CASE("files that are not models are refused") {
  CHECK(refusal("").find("graph") != std::string::npos);
  CHECK(refusal(Message().number(1, 8).out).find("graph") != std::string::npos);
  CHECK(refusal(Message().message(7, linear_graph()).out).find("which opsets") != std::string::npos);
  CHECK(refusal("GGUF\3\0\0\0 and more of it").find("protobuf") != std::string::npos);
  const std::string file = model_of(linear_graph());
  CHECK(refusal(file).empty());
  for (size_t cut = 0; cut < file.size(); cut += 1 + cut / 16) CHECK_FALSE(read_onnx(file.substr(0, cut)));
  CHECK(refusal(file + '\x0b').find("protobuf field") != std::string::npos);  // a group
  CHECK(refusal(file + std::string(1, '\x08') + std::string(10, '\xff')).find("varint") != std::string::npos);
  CHECK(refusal(file + "\x12\x7f").find("bytes, but the file has") != std::string::npos);  // longer than the file
  CHECK(refusal(file + Message().message(7, linear_graph()).out).find("twice") != std::string::npos);
  CHECK(refusal(Message().number(7, 1).out).find("expected a message") != std::string::npos);
  CHECK(refusal(model_of(Message().bytes("\x0a\x05\x0a\x09z"))).find("of which") != std::string::npos);
  CHECK(refusal(model_of(Message().bytes("\x0a\x01\x8a"))).find("over the end") != std::string::npos);
}

TEST_CASE("graphs that nest without end") {
  Message graph = linear_graph();
  for (int depth = 0; depth < 40; ++depth)
    graph = Message().message(1, node_of("If", {}, {}).message(5, Message().message(6, graph)));
  CHECK(refusal(model_of(graph)).find("deep") != std::string::npos);
}

TEST_CASE("tensors with contradictory fields") {
  const std::string four = floats(ramp(4));
  CHECK(refusal_of_tensor(tensor_of("t", {4}).text(9, four)).empty());
  CHECK(refusal_of_tensor(tensor_of("t", {5}).text(9, four)).find("type and shape need 20") != std::string::npos);
  CHECK(refusal_of_tensor(tensor_of("t", {~uint64_t{0}}).text(9, four)).find("negative") != std::string::npos);
  CHECK(refusal_of_tensor(tensor_of("t", {1u << 30, 1u << 30}).text(9, four)).find("2^55") != std::string::npos);
  CHECK(refusal_of_tensor(tensor_of("t", std::vector<uint64_t>(65, 1)).text(9, four)).find("64 dim") !=
        std::string::npos);
  CHECK(refusal_of_tensor(tensor_of("t", {4}).text(9, four).text(4, four)).find("one kind") != std::string::npos);
  CHECK(refusal_of_tensor(tensor_of("t", {4}).text(9, four).text(9, four)).find("twice") != std::string::npos);
  CHECK(refusal_of_tensor(tensor_of("t", {4})).find("none are stored") != std::string::npos);
  CHECK(refusal_of_tensor(tensor_of("t", {4}, 10).text(4, four)).find("not stored") != std::string::npos);
  CHECK(refusal_of_tensor(tensor_of("t", {4}, 8).text(9, four)).find("texts") != std::string::npos);
  CHECK(refusal_of_tensor(tensor_of("", {4}).text(9, four)).find("no name") != std::string::npos);
  CHECK(refusal_of_tensor(tensor_of("\xff", {4}).text(9, four)).find("UTF-8") != std::string::npos);
  CHECK(refusal_of_tensor(tensor_of(std::string(5000, 'n'), {4}).text(9, four)).find("5000") != std::string::npos);
  CHECK(refusal_of_tensor(tensor_of("t", {40}, 10).text(5, four)).find("varints") != std::string::npos);
  CHECK(refusal_of_tensor(tensor_of("t", {4}).text(3, "").text(9, four)).find("segments") != std::string::npos);
  CHECK(refusal_of_tensor(tensor_of("t", {4}).number(9, 4)).find("wire type") != std::string::npos);
  CHECK(refusal_of_tensor(external_tensor("t", {4}, "w").text(9, four)).find("inline data") != std::string::npos);
  CHECK(refusal_of_tensor(external_tensor("t", {4}, "w", "-1")).find("not a number") != std::string::npos);
  CHECK(refusal_of_tensor(external_tensor("t", {4}, "w", "99999999999999999999")).find("not a number") !=
        std::string::npos);
  CHECK(refusal_of_tensor(external_tensor("t", {4}, "w").message(13, Message().text(1, "length").text(2, "15")))
            .find("15 bytes") != std::string::npos);
}

TEST_CASE("external data outside the folder") {
  for (const char* location : {"/etc/passwd", "../w", "a/../../w", "a\\b", "C:w", "", "a//b", "a/", "w\n"}) {
    CHECK_FALSE(onnx::is_inside_folder(location));
    CHECK(refusal_of_tensor(external_tensor("t", {4}, location)).find("only files") != std::string::npos);
  }
  for (const char* location : {"w", "a/b.bin", "./w", "a..b", "..."}) CHECK(onnx::is_inside_folder(location));
}

TEST_CASE("names that are defined twice") {
  const Message w = raw_tensor("w", {2, 2});
  const auto inside = [](const Message& graph) {
    return node_of("If", {"c"}, {"r"}).message(5, Message().text(1, "then_branch").message(6, graph));
  };
  CHECK(refusal(model_of(Message().message(5, w).message(5, w))).find("twice") != std::string::npos);
  CHECK(refusal(model_of(Message().message(5, w).message(1, node_of("Relu", {"x"}, {"w"})))).find("twice") !=
        std::string::npos);
  CHECK(refusal(model_of(Message().message(5, w).message(1, inside(Message().message(5, w))))).find("twice") !=
        std::string::npos);
  CHECK(refusal(model_of(Message().message(1, inside(Message().message(5, w))).message(5, w))).find("twice") !=
        std::string::npos);
  // An initializer is the default of an input.
  const auto model = read_onnx(model_of(Message().message(5, w).message(11, value_of("w"))));
  REQUIRE(model);
  CHECK(model->tensors[0].input.bytes() > 0);
}
