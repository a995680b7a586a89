// Failures and remarks of plans of every format: each names what it is about, a tensor, layer, file or key of the
// config, and failures of a tensor name the key that asks for them, too.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "formats/gguf/gguf.h"
#include "formats/onnx_bytes.h"
#include "formats/safetensors/safetensors.h"
#include "pipeline/onnx_index.h"
#include "pipeline/plan/plan.h"

using namespace wasmquant;

namespace {

// Headers are all that a plan reads, so tensors may have any size.
ModelIndex index_of_header(const std::string& name, const std::string& header, uint64_t bytes) {
  ModelIndex index;
  const uint32_t file = index.add_file(name, bytes);
  const auto read = index.feed(file, {reinterpret_cast<const uint8_t*>(header.data()), header.size()});
  REQUIRE_MESSAGE(bool(read), read.error().message);
  const Status finished = index.finish();
  REQUIRE_MESSAGE(bool(finished), finished.error().message);
  return index;
}

ModelIndex safetensors_model(const List<safetensors::TensorHeader>& tensors) {
  const auto header = safetensors::write_header(tensors, {});
  REQUIRE(bool(header));
  return index_of_header("model.safetensors", header->bytes, header->file_bytes);
}

ModelIndex language_model(StorageDtype dtype = StorageDtype::F32) {
  return safetensors_model({{"model.embed_tokens.weight", StorageDtype::F32, {4096, 192}},
                            {"model.layers.0.mlp.up_proj.weight", dtype, {24, 192}},
                            {"model.layers.0.mlp.down_proj.weight", dtype, {192, 24}},
                            {"model.norm.weight", StorageDtype::F32, {192}}});
}

ModelIndex gguf_model(GgmlType type) {
  gguf::Metadata metadata;
  metadata.set_text("general.architecture", "llama");
  const std::vector<uint64_t> shape{256, 256};
  const gguf::NewTensor tensors[] = {{"blk.0.attn_q.weight", type, shape}, {"blk.0.ffn_up.weight", type, shape}};
  const auto header = gguf::write_header(metadata, tensors);
  REQUIRE(bool(header));
  return index_of_header("model.gguf", header->bytes, header->file_bytes);
}

// MatMul [64, 40], Conv [6, 4, 3, 3].
ModelIndex onnx_model() {
  using namespace test_files;
  Message graph;
  graph.message(1, node_of("MatMul", {"x", "up"}, {"h"}, "/up/MatMul"))
      .message(1, node_of("Conv", {"i", "conv.weight"}, {"c"}, "/conv/Conv"))
      .message(5, raw_tensor("up", {64, 40}))
      .message(5, raw_tensor("conv.weight", {6, 4, 3, 3}));
  for (const char* name : {"x", "i"}) graph.message(11, value_of(name));
  for (const char* name : {"h", "c"}) graph.message(12, value_of(name));
  return onnx_index_of(model_of(graph, 21));
}

struct Attempt {
  Result<Plan> plan;
  List<Diagnostic> diagnostics;

  const Diagnostic* find(std::string_view code) const {
    for (const Diagnostic& each : diagnostics)
      if (each.code == code) return &each;
    return nullptr;
  }
};

// The plan, or not; every place is checked.
Attempt attempt(const ModelIndex& model, const std::string& config, const PlanOptions& options = {}) {
  List<Diagnostic> diagnostics;
  auto plan = make_plan(model, config, options, diagnostics);
  CAPTURE(config);
  CAPTURE(options.format);
  if (!plan) CHECK_MESSAGE(!plan.error().where.empty(), plan.error().message);
  for (const Diagnostic& each : diagnostics) CHECK_MESSAGE(!each.where.empty(), each.code.name(), ": ", each.message);
  return {std::move(plan), std::move(diagnostics)};
}

PlanOptions as(const char* format) {
  PlanOptions options;
  options.format = format;
  return options;
}

std::string weights_of(const std::string& spec, const std::string& more = "") {
  return R"({"global_quant_config": {"weight": )" + spec + more + "}}";
}

constexpr const char* kGroups = R"({"dtype": "int4", "qscheme": "per_group", "group_size": 128})";
constexpr const char* kCheckpointFormats[] = {"compressed-tensors", "quark", "awq", "gptq", "fake-quantized"};

}  // namespace

TEST_CASE("plan diagnostics: a group size that does not divide names the tensor and the key, in every format") {
  const ModelIndex index = language_model();
  for (const char* format : {"compressed-tensors", "quark", "fake-quantized"}) {
    const Attempt refused = attempt(index, weights_of(kGroups), as(format));
    REQUIRE(!refused.plan);
    const Error& error = refused.plan.error();
    CHECK(error.code == ErrorCode::group_size_invalid);
    CHECK(error.where == "model.layers.0.mlp.up_proj.weight");
    CHECK(error.message.find("asked for by /global_quant_config") != std::string::npos);
    const Diagnostic* const listed = refused.find("group-size-invalid");
    REQUIRE(listed != nullptr);
    CHECK(listed->severity == Severity::error);
    CHECK(listed->where == error.where);
  }
  const ModelIndex onnx = onnx_model();
  const Attempt refused = attempt(onnx, weights_of(R"({"dtype": "int4", "qscheme": "per_group", "group_size": 24})"));
  REQUIRE(!refused.plan);
  CHECK(refused.plan.error().where == "up");
  CHECK(refused.plan.error().message.find("asked for by /global_quant_config") != std::string::npos);
}

TEST_CASE("plan diagnostics: every failure of checkpoint plans has a place") {
  const ModelIndex index = language_model();
  PlanOptions calibrated;
  calibrated.calibrates = true;
  size_t failed = 0;
  for (const char* format : kCheckpointFormats) {
    calibrated.format = format;
    for (const std::string& config :
         {weights_of(kGroups), weights_of(R"({"dtype": "fp8_e5m2", "qscheme": "per_tensor"})"),
          weights_of(R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 5})"),
          weights_of(R"({"dtype": "int8", "qscheme": "per_block", "block_size": [8, 8]})"),
          weights_of(R"([{"dtype": "fp8_e4m3", "qscheme": "per_tensor"}, {"dtype": "int4", "qscheme": "per_group",
                         "group_size": 100}])"),
          weights_of(R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})",
                     R"(, "input_tensors": {"dtype": "int4", "qscheme": "per_tensor", "is_dynamic": false})"),
          weights_of(R"({"dtype": "mx6"})"), weights_of(R"({"dtype": "float16"})")}) {
      const Attempt plain = attempt(index, config, as(format));
      const Attempt asked = attempt(index, config, calibrated);
      failed += !plain.plan + !asked.plan;
      if (!plain.plan) {
        const auto errors = std::count_if(plain.diagnostics.begin(), plain.diagnostics.end(),
                                          [](const Diagnostic& each) { return each.severity == Severity::error; });
        CHECK(errors != 0);
      }
    }
    for (const char* preset : {"int8", "int4_wo_128", "uint4_wo_128", "fp8", "mxfp4", "bfloat16", "int8_dynamic"})
      failed += !attempt(index, preset, as(format)).plan;
  }
  CHECK(failed > 20);
}

TEST_CASE("plan diagnostics: a tile that memory cannot hold names the tensor and the key") {
  const ModelIndex index = safetensors_model({{"up.weight", StorageDtype::F32, {4, uint64_t{1} << 27}}});
  const Attempt refused = attempt(index, weights_of(R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})"));
  REQUIRE(!refused.plan);
  CHECK(refused.plan.error().code == ErrorCode::format_unsupported);
  CHECK(refused.plan.error().message.find("for any memory budget") != std::string::npos);
  CHECK(refused.plan.error().where == "up.weight");
  CHECK(refused.plan.error().message.find("asked for by /global_quant_config") != std::string::npos);
}

TEST_CASE("plan diagnostics: a note on many tensors names the first of them") {
  const Attempt left = attempt(language_model(), "int8");
  REQUIRE(left.find("low-coverage") != nullptr);
  CHECK(left.find("low-coverage")->where == "model.embed_tokens.weight");
  const Attempt small = attempt(language_model(StorageDtype::F8_E4M3), "int8", as("fake-quantized"));
  REQUIRE(small.find("requantized") != nullptr);
  CHECK(small.find("requantized")->where == "model.layers.0.mlp.up_proj.weight");
  REQUIRE(small.find("dtype-promoted") != nullptr);
  CHECK(small.find("dtype-promoted")->where == "model.layers.0.mlp.up_proj.weight");
  const Attempt inputs =
      attempt(language_model(),
              weights_of(R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})",
                         R"(, "input_tensors": {"dtype": "int8", "qscheme": "per_tensor", "is_dynamic": false})"));
  REQUIRE(inputs.find("not-applied") != nullptr);
  CHECK(inputs.find("not-applied")->where == "model.layers.0.mlp.up_proj");
}

TEST_CASE("plan diagnostics: every failure of GGUF plans has a place") {
  const Attempt opaque = attempt(gguf_model(GgmlType::q8_k), R"({"dialect": "gguf", "recipe": "q4_k_m"})");
  REQUIRE(!opaque.plan);
  CHECK(opaque.plan.error().code == ErrorCode::format_unsupported);
  CHECK(opaque.plan.error().where == "blk.0.attn_q.weight");
  CHECK(opaque.plan.error().message.find("asked for by /recipe") != std::string::npos);
  const auto errors = std::count_if(opaque.diagnostics.begin(), opaque.diagnostics.end(),
                                    [](const Diagnostic& each) { return each.severity == Severity::error; });
  CHECK(errors == 2);

  const ModelIndex index = gguf_model(GgmlType::q8_0);
  const Attempt again = attempt(index, R"({"dialect": "gguf", "recipe": "q2_k_s", "exclude": ["none"]})");
  REQUIRE(again.find("requantized") != nullptr);
  CHECK(again.find("requantized")->where == "blk.0.attn_q.weight");
  CHECK(again.find("pattern-unused")->where == "/exclude/0");
  CHECK(again.find("needs-importance")->where == "/recipe");
  CHECK(
      !attempt(index, R"({"dialect": "gguf", "recipe": "q4_0", "pre_quant_opt_config": [{"name": "rotation"}]})").plan);
  CHECK(!attempt(index, "int8").plan);
  CHECK(!attempt(index, "int8", as("quark")).plan);
  CHECK(!attempt(index, "q4_0", as("quark")).plan);
  const ModelIndex folder = language_model();  // without config.json
  CHECK(!attempt(folder, "q4_0").plan);
  PlanOptions options;
  const uint8_t not_a_matrix[] = {'n', 'o', 't', ' ', 'a', ' ', 'm', 'a', 't', 'r', 'i', 'x'};
  options.gguf.imatrix = not_a_matrix;
  CHECK(!attempt(index, "q4_0", options).plan);
}

TEST_CASE("plan diagnostics: every failure of ONNX plans has a place") {
  const ModelIndex index = onnx_model();
  PlanOptions calibrated;
  calibrated.calibrates = true;
  for (const std::string& config :
       {weights_of(kGroups), weights_of(R"({"dtype": "fp8_e4m3", "qscheme": "per_tensor"})"),
        weights_of(R"({"dtype": "int8", "qscheme": "per_block", "block_size": [8, 8]})"),
        weights_of(R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})",
                   R"(, "input_tensors": {"dtype": "int4", "qscheme": "per_tensor", "is_dynamic": false})"),
        std::string("fp8"), std::string("q4_0")})
    CHECK(!attempt(index, config, calibrated).plan);
  const Attempt widened = attempt(index, "int4_wo_32");
  REQUIRE(widened.find("int8-instead") != nullptr);
  CHECK(widened.find("int8-instead")->where == "conv.weight");
  const Attempt left = attempt(
      index,
      R"({"global_quant_config": {"weight": {"dtype": "int8", "qscheme": "per_group", "ch_axis": -1, "group_size": 32}},
          "indivisible_groups": "fallback"})");
  REQUIRE(left.find("kept-in-float") != nullptr);
  CHECK(left.find("kept-in-float")->where == "conv.weight");
  CHECK(!attempt(index, "int8", as("quark")).plan);
  CHECK(bool(attempt(index, "int8_dynamic").plan));
}
