// Batch norms of ONNX models folded into the layers before them: weights times factors of channels, new biases, and a
// graph without the norms.
#include <doctest/doctest.h>

#include <cmath>

#include "formats/onnx_bytes.h"
#include "pipeline/memory_model.h"

using namespace wasmquant;
using namespace wasmquant::testing;
using namespace test_files;

namespace {

constexpr double kEpsilon = 1e-3;

Message values_of(const std::string& name, const std::vector<uint64_t>& shape, const std::vector<float>& values) {
  return tensor_of(name, shape).text(9, floats(values));
}
std::vector<float> shifted(size_t count, float by) {
  std::vector<float> out = ramp(count);
  for (float& v : out) v += by;
  return out;
}
Message norm_of(const std::string& input, const std::string& output, const std::string& prefix,
                std::vector<Message> attributes = {}) {
  Message node =
      node_of("BatchNormalization", {input, prefix + ".scale", prefix + ".B", prefix + ".mean", prefix + ".var"},
              {output}, prefix);
  const auto epsilon = static_cast<float>(kEpsilon);
  uint32_t bits = 0;
  std::memcpy(&bits, &epsilon, 4);
  Message field;
  field.text(1, "epsilon").bytes(std::string("\x15", 1) + std::string(reinterpret_cast<const char*>(&bits), 4));
  node.message(5, field.number(20, 1));
  for (const Message& attribute : attributes) node.message(5, attribute);
  return node;
}
void add_values(Message& graph, const std::string& prefix, size_t channels) {
  graph.message(5, values_of(prefix + ".scale", {channels}, shifted(channels, 1.5f)))
      .message(5, values_of(prefix + ".B", {channels}, shifted(channels, -0.5f)))
      .message(5, values_of(prefix + ".mean", {channels}, shifted(channels, 0.25f)))
      .message(5, values_of(prefix + ".var", {channels}, shifted(channels, 2)));
}

// Conv with a bias; ConvTranspose in two groups without; Gemm either way round. A Conv whose output two nodes read, one
// whose output is given out, and a norm in training form stay.
std::string onnx_folding_network() {
  Message graph;
  const Message grouped = Message()
                              .bytes(node_of("ConvTranspose", {"a", "up.weight"}, {"u"}, "/up/ConvTranspose").out)
                              .message(5, attribute_of("group", 2));
  const Message transposed = Message()
                                 .bytes(node_of("Gemm", {"m", "fc.weight", "fc.bias"}, {"f"}, "/fc/Gemm").out)
                                 .message(5, attribute_of("transB", 1));
  graph.message(1, node_of("Conv", {"x", "conv.weight", "conv.bias"}, {"c"}, "/conv/Conv"))
      .message(1, norm_of("c", "cn", "n1"))
      .message(1, node_of("Relu", {"cn"}, {"a"}))
      .message(1, grouped)
      .message(1, norm_of("u", "un", "n2"))
      .message(1, transposed)
      .message(1, norm_of("f", "fn", "n3"))
      .message(1, node_of("Gemm", {"fn", "last"}, {"l"}, "/last/Gemm"))
      .message(1, norm_of("l", "ln", "n4"))
      .message(1, node_of("Conv", {"x", "twice.weight"}, {"t"}, "/twice/Conv"))
      .message(1, norm_of("t", "tn", "n5"))
      .message(1, node_of("Add", {"t", "tn"}, {"s"}))
      .message(1, node_of("Conv", {"x", "given.weight"}, {"g"}, "/given/Conv"))
      .message(1, norm_of("g", "gn", "n6"))
      .message(1, node_of("Conv", {"x", "training.weight"}, {"r"}, "/training/Conv"))
      .message(1, norm_of("r", "rn", "n7", {attribute_of("training_mode", 1)}))
      .message(5, raw_tensor("conv.weight", {6, 4, 3, 3}))
      .message(5, values_of("conv.bias", {6}, shifted(6, 0.125f)))
      .message(5, raw_tensor("up.weight", {6, 4, 2, 2}))
      .message(5, raw_tensor("fc.weight", {8, 32}))
      .message(5, values_of("fc.bias", {8}, shifted(8, 0.125f)))
      .message(5, raw_tensor("last", {8, 16}))
      .message(5, raw_tensor("twice.weight", {6, 4, 3, 3}))
      .message(5, raw_tensor("given.weight", {6, 4, 3, 3}))
      .message(5, raw_tensor("training.weight", {6, 4, 3, 3}));
  for (const auto& [prefix, channels] : std::initializer_list<std::pair<const char*, size_t>>{
           {"n1", 6}, {"n2", 8}, {"n3", 8}, {"n4", 16}, {"n5", 6}, {"n6", 6}, {"n7", 6}})
    add_values(graph, prefix, channels);
  for (const char* name : {"x", "m"}) graph.message(11, value_of(name));
  for (const char* name : {"un", "ln", "s", "g", "gn", "rn"}) graph.message(12, value_of(name));
  return model_of(graph, 21);
}

struct OnnxFile : MemoryModel {
  explicit OnnxFile(const std::string& bytes) {
    names.push_back("model.onnx");
    files.emplace_back(bytes.begin(), bytes.end());
  }
  ModelIndex read() const {
    ModelIndex index;
    const uint32_t file = index.add_file(names[0], files[0].size());
    REQUIRE(bool(index.feed(file, files[0])));
    REQUIRE(bool(index.finish()));
    return index;
  }
  std::string bytes() const { return {files[0].begin(), files[0].end()}; }
};

// As a host makes it: planned, read what it asks for, planned anew.
Result<Plan> onnx_folding_plan_of(const OnnxFile& source, const ModelIndex& index, const std::string& config,
                                  PlanOptions options, List<Diagnostic>& diagnostics) {
  TRY(first, make_plan(index, config, options, diagnostics));
  std::vector<uint8_t> constants;
  for (const SourceRange& range : first.constants) {
    const auto begin = source.files[range.at.file].begin() + static_cast<ptrdiff_t>(range.at.offset);
    constants.insert(constants.end(), begin, begin + static_cast<ptrdiff_t>(range.bytes));
  }
  options.constants = constants;
  diagnostics.clear();
  auto plan = make_plan(index, config, options, diagnostics);
  if (plan) {
    CHECK(plan->constants.empty());
    CHECK(plan->file_bytes() == first.file_bytes());
    CHECK(plan->files[0].bytes == first.files[0].bytes);
  }
  return plan;
}

std::string onnx_folding_config_of(const std::string& weight, const std::string& rest) {
  return R"({"global_quant_config": {"weight": )" + weight + R"(}, "indivisible_groups": "fallback",
    "pre_quant_opt_config": [{"name": "merge_batch_norm"}])" +
         rest + "}";
}

std::vector<float> tensor(const OnnxFile& model, const std::string& name) {
  const ModelIndex index = model.read();
  const ModelTensor* found = index.find(name);
  REQUIRE_MESSAGE(found != nullptr, name);
  std::vector<float> out((found->stored.end - found->stored.begin) / sizeof(float));
  std::memcpy(out.data(), model.files[found->file].data() + found->stored.begin, out.size() * sizeof(float));
  return out;
}

const std::string kOnnxFoldingInt8 = R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})";

// What a folded weight and bias must be. `channel_of`: of an element of the weight.
template <class ChannelOf>
void check_folded(const OnnxFile& written, const std::string& weight, size_t elements, const std::string& bias,
                  size_t channels, bool has_bias, ChannelOf channel_of) {
  CAPTURE(weight);
  const auto gamma = shifted(channels, 1.5f), beta = shifted(channels, -0.5f), mean = shifted(channels, 0.25f),
             variance = shifted(channels, 2), old = shifted(channels, 0.125f), original = ramp(elements);
  const auto factor = [&](size_t c) { return gamma[c] / std::sqrt(double{variance[c]} + kEpsilon); };
  const std::vector<float> found = tensor(written, weight), found_bias = tensor(written, bias);
  REQUIRE(found.size() == elements);
  REQUIRE(found_bias.size() == channels);
  for (size_t e = 0; e < elements; ++e)
    CHECK(found[e] == doctest::Approx(original[e] * factor(channel_of(e))).epsilon(1e-6));
  for (size_t c = 0; c < channels; ++c)
    CHECK(found_bias[c] == doctest::Approx(((has_bias ? old[c] : 0.0f) - mean[c]) * factor(c) + beta[c]).epsilon(1e-5));
}

}  // namespace

TEST_CASE("batch norms: folded weights and biases, the graph without them") {
  const OnnxFile source(onnx_folding_network());
  const ModelIndex index = source.read();
  std::string first;
  for (const uint64_t tile_bytes : {uint64_t{1}, uint64_t{64}, uint64_t{1} << 20}) {
    List<Diagnostic> diagnostics;
    PlanOptions options;
    options.tile_bytes = {tile_bytes, tile_bytes};
    const auto plan = onnx_folding_plan_of(
        source, index, onnx_folding_config_of(kOnnxFoldingInt8, R"(, "exclude": ["*"])"), options, diagnostics);
    REQUIRE_MESSAGE(plan, plan.error().message);
    REQUIRE(diagnostics.size() == 1);
    CHECK(diagnostics[0].code == "norms-folded");
    CHECK(diagnostics[0].where == "/pre_quant_opt_config/0");
    CHECK(diagnostics[0].message.find("4 of 7") == 0);
    for (const bool reverse : {false, true}) {
      const auto run = run_plan(source, *plan, reverse);
      REQUIRE_MESSAGE(run, run.error().message);
      const std::string bytes(run->model.files[0].begin(), run->model.files[0].end());
      if (first.empty()) first = bytes;
      CHECK(bytes == first);
    }
  }
  const OnnxFile written(first);
  check_folded(written, "conv.weight", 216, "conv.weight_folded_bias", 6, true, [](size_t e) { return e / 36; });
  check_folded(written, "up.weight", 96, "up.weight_folded_bias", 8, false,
               [](size_t e) { return e / 48 * 4 + e / 4 % 4; });
  check_folded(written, "fc.weight", 256, "fc.weight_folded_bias", 8, true, [](size_t e) { return e / 32; });
  check_folded(written, "last", 128, "last_folded_bias", 16, false, [](size_t e) { return e % 16; });
  for (const char* stays : {"twice.weight", "given.weight", "training.weight"})
    CHECK(tensor(written, stays) == ramp(216));

  const auto model = read_onnx(first);
  REQUIRE(bool(model));
  List<std::string_view> norms;
  for (const onnx::Node& node : model->nodes) {
    if (node.op_type == "BatchNormalization") norms.push_back(node.name);
    if (node.name == "/conv/Conv") {
      CHECK(node.outputs[0] == "cn");
      CHECK(node.inputs[2] == "conv.weight_folded_bias");
    }
    if (node.name == "/up/ConvTranspose") CHECK(node.find("group")->integer == 2);
  }
  CHECK(norms == List<std::string_view>{"n5", "n6", "n7"});
  for (const char* gone : {"n1.scale", "n4.var", "conv.bias", "fc.bias"}) CHECK_FALSE(model->has_name(gone));
  CHECK(model->has_name("n5.scale"));
}

TEST_CASE("batch norms: codes are those of the folded weights, in every form") {
  const OnnxFile source(onnx_folding_network());
  const ModelIndex index = source.read();
  List<Diagnostic> diagnostics;
  const auto float_plan = onnx_folding_plan_of(
      source, index, onnx_folding_config_of(kOnnxFoldingInt8, R"(, "exclude": ["*"])"), {}, diagnostics);
  REQUIRE(bool(float_plan));
  const auto folded = run_plan(source, *float_plan);
  REQUIRE(bool(folded));
  const OnnxFile floats(std::string(folded->model.files[0].begin(), folded->model.files[0].end()));
  const ModelIndex float_index = floats.read();
  const std::string dynamic = R"({"dtype": "uint8", "is_dynamic": true, "symmetric": false})";
  for (const std::string& weight :
       {kOnnxFoldingInt8, std::string(R"({"dtype": "uint8", "qscheme": "per_tensor", "symmetric": false})"),
        std::string(R"({"dtype": "int4", "qscheme": "per_group", "group_size": 32, "ch_axis": 1})"),
        kOnnxFoldingInt8 + R"(, "input_tensors": )" + dynamic}) {
    CAPTURE(weight);
    const bool is_grouped = weight.find("per_group") != std::string::npos;
    const std::string rest = is_grouped ? R"(, "exclude": ["conv", "up", "twice", "given", "training"])" : "";
    const auto quantized = onnx_folding_plan_of(source, index, onnx_folding_config_of(weight, rest), {}, diagnostics);
    REQUIRE_MESSAGE(quantized, quantized.error().message);
    const auto one = run_plan(source, *quantized);
    REQUIRE_MESSAGE(one, one.error().message);
    // The folded model quantized as any other.
    const std::string plain =
        R"({"global_quant_config": {"weight": )" + weight + R"(}, "indivisible_groups": "fallback")" + rest + "}";
    const auto other_plan = make_plan(float_index, plain, {}, diagnostics);
    REQUIRE_MESSAGE(other_plan, other_plan.error().message);
    const auto two = run_plan(floats, *other_plan);
    REQUIRE_MESSAGE(two, two.error().message);
    const OnnxFile left(std::string(one->model.files[0].begin(), one->model.files[0].end())),
        right(std::string(two->model.files[0].begin(), two->model.files[0].end()));
    const ModelIndex left_index = left.read(), right_index = right.read();
    CHECK(left_index.tensors().size() == right_index.tensors().size());
    for (const ModelTensor& each : left_index.tensors()) {
      const ModelTensor* same = right_index.find(each.stored.name);
      REQUIRE_MESSAGE(same != nullptr, each.stored.name);
      const auto bytes = [](const OnnxFile& file, const StoredTensor& stored) {
        return file.bytes().substr(stored.begin, stored.end - stored.begin);
      };
      CHECK_MESSAGE(bytes(left, each.stored) == bytes(right, same->stored), each.stored.name);
    }
  }
}

TEST_CASE("batch norms: a norm that cannot be folded is named with the reason") {
  const std::string text = onnx_folding_network();
  const OnnxFile source(text);
  const ModelIndex index = source.read();
  List<Diagnostic> diagnostics;
  const auto without = make_plan(index, onnx_folding_config_of(kOnnxFoldingInt8, ""), {}, diagnostics);
  REQUIRE(bool(without));
  CHECK(without->constants.size() == 4 * 4 + 2);
  // A plan whose values are not known cannot be run.
  CHECK(run_plan(source, *without).error().code == ErrorCode::argument_invalid);
  const std::vector<uint8_t> wrong(12);
  PlanOptions options;
  options.constants = wrong;
  CHECK(make_plan(index, onnx_folding_config_of(kOnnxFoldingInt8, ""), options, diagnostics).error().code ==
        ErrorCode::argument_invalid);

  std::string bad = text;  // a variance of -1
  const std::string variance = floats(shifted(8, 2));
  for (size_t at = bad.find(variance); at != bad.npos; at = bad.find(variance, at + 1))
    bad.replace(at, 4, floats({-1}));
  const OnnxFile broken(bad);
  const ModelIndex broken_index = broken.read();
  const auto refused =
      onnx_folding_plan_of(broken, broken_index, onnx_folding_config_of(kOnnxFoldingInt8, ""), {}, diagnostics);
  CHECK(refused.error().code == ErrorCode::value_not_finite);
  CHECK(refused.error().where == "n2.scale");

  // No norm can be folded, and none is there.
  const std::string none = R"({"name": "merge_batch_norm"})";
  Message graph;
  graph.message(1, node_of("Conv", {"x", "w"}, {"y"}, "/c/Conv")).message(5, raw_tensor("w", {6, 4, 3, 3}));
  graph.message(11, value_of("x")).message(12, value_of("y"));
  const OnnxFile plain(model_of(graph, 21));
  diagnostics.clear();
  REQUIRE(bool(make_plan(plain.read(), onnx_folding_config_of(kOnnxFoldingInt8, ""), {}, diagnostics)));
  REQUIRE(diagnostics.size() == 1);
  CHECK(diagnostics[0].code == "no-effect");
  // Nor is it said where it only comes along.
  diagnostics.clear();
  REQUIRE(bool(make_plan(plain.read(), R"({"dialect": "brevitas", "global_quant_config": {"weight": {}},
    "pre_quant_opt_config": [{"name": "Preprocess"}]})",
                         {}, diagnostics)));
  CHECK(diagnostics.empty());
}
