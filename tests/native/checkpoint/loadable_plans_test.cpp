// Plans whose files vLLM loads: words for 8-bit weights without quantized inputs, one scheme for layers that it joins.
#include <doctest/doctest.h>

#include <string>

#include "formats/safetensors/safetensors.h"
#include "pipeline/plan/plan.h"

using namespace wasmquant;

namespace {

Plan loadable_plan(const List<safetensors::TensorHeader>& tensors, const std::string& config,
                   List<Diagnostic>& diagnostics, const std::string& config_json = "",
                   const char* format = "compressed-tensors") {
  const auto header = safetensors::write_header(tensors, {});
  REQUIRE(bool(header));
  ModelIndex index;
  const uint32_t file = index.add_file("model.safetensors", header->file_bytes);
  REQUIRE(bool(index.feed(file, {reinterpret_cast<const uint8_t*>(header->bytes.data()), header->bytes.size()})));
  if (!config_json.empty()) index.set_sibling_file("config.json", config_json);
  const Status finished = index.finish();
  REQUIRE(bool(finished));
  PlanOptions options;
  options.format = format;
  options.experts = ExpertChoice::include;
  auto plan = make_plan(index, config, options, diagnostics);
  REQUIRE_MESSAGE(bool(plan), plan.error().message);
  return std::move(*plan);
}

std::string preset_like(const std::string& weight, const std::string& more = "", const std::string& layer = "{}") {
  return R"({"global_quant_config": {"weight": )" + weight + more + R"(}, "layer_quant_config": )" + layer +
         R"(, "indivisible_groups": "fallback", "default_exclusions": true})";
}

// What a weight becomes: the names of its tensors.
std::string suffixes(const Plan& plan, std::string_view weight) {
  std::string out;
  for (const PlannedTensor& tensor : plan.tensors)
    if (tensor.task.name == weight)
      for (const Component& component : tensor.outputs())
        out += component.name_part.substr(component.name_part.rfind('.'));
  return out;
}

const Diagnostic* diagnostic_of(const List<Diagnostic>& diagnostics, std::string_view code) {
  for (const Diagnostic& each : diagnostics)
    if (each.code == code) return &each;
  return nullptr;
}

std::string compressor_of_group(const Plan& plan) {
  return plan.quantization_config["config_groups"]["group_0"]["format"].as_string();
}

const List<safetensors::TensorHeader> kLayer = {{"model.layers.0.mlp.down_proj.weight", StorageDtype::F32, {64, 128}}};
constexpr const char* kBlocks = R"({"dtype": "fp8_e4m3", "qscheme": "per_block", "block_size": [128, 128]})";

}  // namespace

TEST_CASE("loadable plans: 8-bit integers are words, but bytes if inputs are quantized or a class reads the weight") {
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  const std::string words = ".weight_packed.weight_scale.weight_shape";
  for (const char* dtype : {"int8", "uint8"}) {
    const std::string weight =
        std::string(R"({"dtype": ")") + dtype + R"(", "qscheme": "per_channel", "ch_axis": 0, "symmetric": false})";
    List<Diagnostic> diagnostics;
    const Plan plan = loadable_plan(kLayer, preset_like(weight), diagnostics);
    CHECK(suffixes(plan, name) == words + ".weight_zero_point");
    CHECK(compressor_of_group(plan) == "pack-quantized");
  }
  const std::string int8 = R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})";
  List<Diagnostic> diagnostics;
  CHECK(suffixes(loadable_plan(kLayer, preset_like(int8), diagnostics), name) == words);
  const Plan dynamic = loadable_plan(
      kLayer,
      preset_like(
          int8, R"(, "input_tensors": {"dtype": "int8", "qscheme": "per_channel", "ch_axis": -1, "is_dynamic": true})"),
      diagnostics);
  CHECK(suffixes(dynamic, name) == ".weight.weight_scale");
  CHECK(compressor_of_group(dynamic) == "int-quantized");
  // The file does not say so without calibration.
  const Plan without = loadable_plan(
      kLayer,
      preset_like(int8, R"(, "input_tensors": {"dtype": "int8", "qscheme": "per_tensor", "is_dynamic": false})"),
      diagnostics);
  CHECK(suffixes(without, name) == words);
  const Plan falcon = loadable_plan(kLayer, preset_like(int8), diagnostics, R"({"model_type": "falcon"})");
  CHECK(suffixes(falcon, name) == ".weight.weight_scale");
  const Plan tensor = loadable_plan(kLayer, preset_like(R"({"dtype": "int8", "qscheme": "per_tensor"})"), diagnostics);
  CHECK(suffixes(tensor, name) == ".weight.weight_scale");
}

TEST_CASE("loadable plans: classes that read weights before 5.24 are packed, and the plan names the release") {
  const std::string name = "model.layers.0.mlp.down_proj.weight", hubert = R"({"model_type": "hubert"})";
  List<Diagnostic> diagnostics;
  const std::string int8 = preset_like(R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})");
  CHECK(suffixes(loadable_plan(kLayer, int8, diagnostics, hubert), name) == ".weight.weight_scale");
  CHECK(diagnostic_of(diagnostics, "loader-version") == nullptr);
  const std::string int4 = preset_like(R"({"dtype": "int4", "qscheme": "per_channel", "ch_axis": 0})");
  CHECK(suffixes(loadable_plan(kLayer, int4, diagnostics, hubert), name) == ".weight_packed.weight_scale.weight_shape");
  const Diagnostic* const note = diagnostic_of(diagnostics, "loader-version");
  REQUIRE(note != nullptr);
  CHECK(note->message.find("transformers>=5.24") != std::string::npos);
}

TEST_CASE(
    "loadable plans: blocks may end short in layers that are not joined; a config that asks for more gets a warning") {
  const List<safetensors::TensorHeader> tensors = {
      {"model.layers.0.mlp.down_proj.weight", StorageDtype::F32, {200, 300}},
      {"model.layers.0.mlp.gate_proj.weight", StorageDtype::F32, {200, 128}},
      {"model.layers.0.mlp.up_proj.weight", StorageDtype::F32, {200, 128}}};
  List<Diagnostic> diagnostics;
  CHECK(loadable_plan(tensors, preset_like(kBlocks), diagnostics).quantized_count == 1);
  const std::string asked = std::string(R"({"global_quant_config": {"weight": )") + kBlocks + "}}";
  CHECK(loadable_plan(tensors, asked.c_str(), diagnostics).quantized_count == 3);
  const Diagnostic* const warning = diagnostic_of(diagnostics, "fused-layers");
  REQUIRE(warning != nullptr);
  CHECK(warning->severity == Severity::warning);
  CHECK(warning->message.find("200 rows do not fill blocks of 128") != std::string::npos);
}

TEST_CASE("loadable plans: q, k and v are left unquantized together") {
  const List<safetensors::TensorHeader> tensors = {
      {"model.layers.0.self_attn.k_proj.weight", StorageDtype::F32, {64, 128}},
      {"model.layers.0.self_attn.o_proj.weight", StorageDtype::F32, {256, 128}},
      {"model.layers.0.self_attn.q_proj.weight", StorageDtype::F32, {128, 128}},
      {"model.layers.0.self_attn.v_proj.weight", StorageDtype::F32, {64, 128}}};
  List<Diagnostic> diagnostics;
  const Plan plan = loadable_plan(tensors, preset_like(kBlocks), diagnostics);
  CHECK(plan.quantized_count == 1);
  CHECK(plan.tensors[1].outputs().size() == 2);
  CHECK(plan.tensors[2].reason->text.find("vLLM joins this layer with model.layers.0.self_attn.k_proj") == 0);
  const Diagnostic* const note = diagnostic_of(diagnostics, "fused-layers");
  REQUIRE(note != nullptr);
  CHECK(note->severity == Severity::note);
  CHECK(note->where == "model.layers.0.self_attn.q_proj.weight");
  CHECK(loadable_plan(tensors, preset_like(kBlocks), diagnostics, "", "quark").quantized_count == 4);
  CHECK(loadable_plan(tensors, preset_like(kBlocks), diagnostics, "", "fake-quantized").quantized_count == 4);
}

TEST_CASE("loadable plans: a config that asks for two schemes gets them and a warning that names the tensors") {
  const List<safetensors::TensorHeader> tensors = {
      {"model.layers.0.mlp.gate_proj.weight", StorageDtype::F32, {64, 128}},
      {"model.layers.0.mlp.up_proj.weight", StorageDtype::F32, {64, 128}}};
  const std::string int8 = R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})";
  const std::string config =
      preset_like(int8, "", R"({"*.up_proj": {"weight": {"dtype": "int4", "qscheme": "per_channel", "ch_axis": 0}}})");
  List<Diagnostic> diagnostics;
  const Plan plan = loadable_plan(tensors, config, diagnostics);
  CHECK(plan.quantized_count == 2);
  const Diagnostic* const warning = diagnostic_of(diagnostics, "fused-layers");
  REQUIRE(warning != nullptr);
  CHECK(warning->severity == Severity::warning);
  CHECK(warning->where == "model.layers.0.mlp.up_proj.weight");
  CHECK(warning->message.find("vLLM will not load this file") != std::string::npos);
}

TEST_CASE("loadable plans: the experts of a block have one group size") {
  List<safetensors::TensorHeader> tensors;
  for (const char* expert : {"0", "1"})
    for (const char* part : {"down_proj", "gate_proj", "up_proj"})
      tensors.push_back(
          {text_of("model.layers.0.mlp.experts.{}.{}.weight", std::string_view(expert), std::string_view(part)),
           StorageDtype::F32, part[0] == 'd' ? std::vector<uint64_t>{256, 96} : std::vector<uint64_t>{96, 256}});
  const std::string int4 = R"({"dtype": "int4", "qscheme": "per_group", "ch_axis": -1, "group_size": 128})";
  List<Diagnostic> diagnostics;
  const Plan plan = loadable_plan(tensors, preset_like(int4), diagnostics);
  CHECK(plan.quantized_count == 6);
  for (const PlannedTensor& tensor : plan.tensors) CHECK(tensor.task.layout->spec.group_size == 32);
  CHECK(plan.quantization_config["config_groups"].members().size() == 1);
}
