// Static inputs and outputs in a plan for ONNX: what is asked of calibration, what is put in place, what is refused.
#include "pipeline/onnx_plan/onnx_activations.h"

#include <doctest/doctest.h>

#include "formats/onnx_bytes.h"
#include "pipeline/model_index/onnx_values.h"
#include "pipeline/onnx_index.h"

using namespace wasmquant;
using namespace test_files;

namespace {

ModelIndex onnx_activations_network() {
  const Message gemm = node_of("Gemm", {"h", "down.weight"}, {"g"}, "/down/Gemm").message(5, attribute_of("transB", 1));
  Message graph;
  graph.message(1, node_of("MatMul", {"x", "up"}, {"h"}, "/up/MatMul"))
      .message(1, gemm)
      .message(1, node_of("Gather", {"table.weight", "ids"}, {"t"}, "/table/Gather"))
      .message(5, raw_tensor("up", {64, 32}))
      .message(5, raw_tensor("down.weight", {16, 32}))
      .message(5, raw_tensor("table.weight", {10, 32}));
  for (const char* name : {"x", "ids"}) graph.message(11, value_of(name));
  for (const char* name : {"g", "t"}) graph.message(12, value_of(name));
  return onnx_index_of(model_of(graph, 21));
}

std::string onnx_activations_config_of(const std::string& weight, const std::string& inputs,
                                       const std::string& more = "") {
  const std::string layer = R"({"weight": )" + weight + R"(, "input_tensors": )" + inputs + more + "}";
  return R"({"global_quant_config": )" + layer + R"(, "layer_type_quant_config": {"Embedding": )" + layer + "}}";
}
const std::string kOnnxActivationsInt8 = R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})";
const std::string kUint8 = R"({"dtype": "uint8", "qscheme": "per_tensor", "symmetric": false, "is_dynamic": false})";

struct Planned {
  Result<Plan> plan;
  List<Diagnostic> diagnostics;
};
Planned onnx_activations_planned(const ModelIndex& index, const std::string& config, bool calibrates,
                                 std::string_view found = "null") {
  List<Diagnostic> diagnostics;
  PlanOptions options;
  options.calibrates = calibrates;
  options.activations = *json::parse(found);
  auto plan = make_plan(index, config, options, diagnostics);
  return {std::move(plan), std::move(diagnostics)};
}

}  // namespace

TEST_CASE("static inputs and outputs are requested from calibration, and the results are in the file") {
  const ModelIndex index = onnx_activations_network();
  const std::string config =
      onnx_activations_config_of(kOnnxActivationsInt8, kUint8, R"(, "output_tensors": )" + kUint8);
  const Planned asked = onnx_activations_planned(index, config, true);
  REQUIRE_MESSAGE(asked.plan, asked.plan.error().message);
  std::vector<std::string> requests;
  for (const ActivationRequest& request : asked.plan->requests)
    requests.push_back(request.layer + "." + std::string(name_of(request.role)));
  CHECK(requests == std::vector<std::string>{"up.input", "up.output", "down.input", "down.output"});
  CHECK(asked.plan->requests[0].spec->dtype == Dtype::uint8);
  CHECK(asked.plan->requests[0].scales == 1);
  CHECK(asked.plan->tensors[0].reason->text.ends_with(
      "; as DequantizeLinear; inputs static uint8; outputs static uint8"));
  CHECK(asked.plan->tensors[2].reason->text.ends_with("; as Gather of codes"));

  std::string found = "[";
  for (const char* layer : {"up", "down"})
    for (const char* role : {"input", "output"})
      found += std::string(found.size() > 1 ? "," : "") + R"({"layer": ")" + layer + R"(", "role": ")" + role +
               R"(", "scale": [0.15625], "zeroPoint": [77]})";
  const Planned put = onnx_activations_planned(index, config, true, found + "]");
  REQUIRE_MESSAGE(put.plan, put.plan.error().message);
  CHECK(put.plan->files[0].bytes == asked.plan->files[0].bytes);
  const auto count_of = [](const Plan& plan, const std::string& bytes) {
    size_t count = 0;
    for (size_t at = plan.files[0].prefix.find(bytes); at != std::string::npos;
         at = plan.files[0].prefix.find(bytes, at + 1))
      ++count;
    return count;
  };
  CHECK(count_of(*put.plan, floats({0.15625f})) == 4);
  CHECK(count_of(*asked.plan, floats({0.15625f})) == 0);
}

TEST_CASE("without calibration static inputs are left out, with a warning") {
  const ModelIndex index = onnx_activations_network();
  const Planned out = onnx_activations_planned(index, onnx_activations_config_of(kOnnxActivationsInt8, kUint8), false);
  REQUIRE(bool(out.plan));
  CHECK(out.plan->requests.empty());
  // Of the embedding, whose inputs are numbers of rows, too.
  REQUIRE(out.diagnostics.size() == 2);
  for (const Diagnostic& diagnostic : out.diagnostics) CHECK(diagnostic.code == "not-applied");
  CHECK(out.diagnostics[0].message.find("inputs and outputs of some layers stay in float") != std::string::npos);
  CHECK(out.diagnostics[1].message.find("come from calibration") != std::string::npos);
}

TEST_CASE("static specs that ONNX has no operators for are refused by name") {
  const ModelIndex index = onnx_activations_network();
  for (const char* spec : {R"({"dtype": "fp8_e4m3", "qscheme": "per_tensor", "is_dynamic": false})",
                           R"({"dtype": "int4", "qscheme": "per_tensor", "is_dynamic": false})",
                           R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": -1, "is_dynamic": false})"}) {
    const Planned out = onnx_activations_planned(index, onnx_activations_config_of(kOnnxActivationsInt8, spec), true);
    REQUIRE(!out.plan);
    CHECK(out.plan.error().code == ErrorCode::format_unsupported);
    CHECK(out.plan.error().where == "up");
    CHECK(out.plan.error().message.find("int8 and uint8 per tensor") != std::string::npos);
  }
}

TEST_CASE("weighted observers get the importance of input channels, where rows are outputs") {
  const ModelIndex index = onnx_activations_network();
  const std::string groups =
      R"({"dtype": "int4", "qscheme": "per_group", "ch_axis": 1, "group_size": 32, "observer_cls": "PerGroupMSEObserver",
          "observer_options": {"weighted": true}})";
  const std::string config = R"({"global_quant_config": {"weight": )" + groups + "}}";
  const Planned asked = onnx_activations_planned(index, config, true);
  REQUIRE_MESSAGE(asked.plan, asked.plan.error().message);
  REQUIRE(asked.plan->requests.size() == 2);
  CHECK(asked.plan->requests[0].importance);
  CHECK(asked.plan->requests[0].features == 64);
  CHECK(asked.plan->requests[1].features == 32);
  List<Diagnostic> diagnostics;
  PlanOptions options;
  options.calibrates = true;
  options.onnx.qdq = true;
  const auto refused = make_plan(index, config, options, diagnostics);
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::not_implemented);
  CHECK(refused.error().where == "up");
}

TEST_CASE("values of layers by their names in the graph") {
  const ModelIndex index = onnx_activations_network();
  CHECK(json::write(layer_values(index.onnx())) ==
        R"({"layers":[{"layer":"up","input":"x","output":"h","nested":false},)"
        R"({"layer":"down","input":"h","output":"g","nested":false}],)"
        R"("inputs":[{"name":"x","type":0,"optional":false},{"name":"ids","type":0,"optional":false}],)"
        R"("outputs":["g","t"],"locations":[]})");
}
