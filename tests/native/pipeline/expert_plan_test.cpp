// Experts that lie in one tensor, either way round, become what they become as tensors of their own.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "pipeline/memory_model.h"
#include "pipeline/plan/coverage.h"
#include "random_values.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

constexpr uint64_t kExpertCount = 3, kIn = 64, kInner = 32;
constexpr const char* kParent = "model.layers.0.mlp.experts";

struct Layouts {
  MemoryModel single, output_major, input_major;
};

std::vector<float> transposed(const std::vector<float>& x, uint64_t rows, uint64_t columns) {
  std::vector<float> out(x.size());
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t c = 0; c < columns; ++c) out[c * rows + r] = x[r * columns + c];
  return out;
}

void append(std::vector<float>& to, const std::vector<float>& x) { to.insert(to.end(), x.begin(), x.end()); }

// The same experts as three models: a tensor each; [E, out, in]; [E, in, out].
Layouts make_layouts(StorageDtype dtype) {
  Layouts out;
  std::vector<Tensor> single;
  std::vector<float> up_rows, down_rows, up_columns, down_columns;
  for (uint64_t e = 0; e < kExpertCount; ++e) {
    const auto values = [&](uint64_t rows, uint64_t columns, uint32_t seed) {
      std::vector<float> x = normal_values(rows * columns, seed + static_cast<uint32_t>(10 * e));
      for (uint64_t i = 0; i < x.size(); ++i) x[i] *= static_cast<float>(1 + i / columns % 5);
      return x;
    };
    const std::vector<float> gate = values(kInner, kIn, 1), up = values(kInner, kIn, 2), down = values(kIn, kInner, 3);
    const std::string layer = std::string(kParent) + "." + std::to_string(e);
    single.push_back({layer + ".gate_proj.weight", dtype, {kInner, kIn}, gate});
    single.push_back({layer + ".up_proj.weight", dtype, {kInner, kIn}, up});
    single.push_back({layer + ".down_proj.weight", dtype, {kIn, kInner}, down});
    std::vector<float> both = gate;
    append(both, up);
    append(up_rows, both);
    append(down_rows, down);
    append(up_columns, transposed(both, 2 * kInner, kIn));
    append(down_columns, transposed(down, kIn, kInner));
  }
  const std::string up_name = std::string(kParent) + ".gate_up_proj", down_name = std::string(kParent) + ".down_proj";
  out.single.add_file("model.safetensors", single);
  out.output_major.add_file("model.safetensors", {{up_name, dtype, {kExpertCount, 2 * kInner, kIn}, up_rows},
                                                  {down_name, dtype, {kExpertCount, kIn, kInner}, down_rows}});
  out.input_major.add_file("model.safetensors", {{up_name, dtype, {kExpertCount, kIn, 2 * kInner}, up_columns},
                                                 {down_name, dtype, {kExpertCount, kInner, kIn}, down_columns}});
  return out;
}

// Bytes of every tensor that a plan's run writes.
std::map<std::string, std::vector<uint8_t>> expert_plan_written(const MemoryModel& model, std::string_view preset,
                                                                const char* format, uint64_t tile_bytes = 1 << 20) {
  const ModelIndex index = model.index();
  List<Diagnostic> diagnostics;
  PlanOptions options;
  options.format = format;
  options.tile_bytes.rows = options.tile_bytes.columns = tile_bytes;
  auto plan = make_plan(index, preset, options, diagnostics);
  if (!plan) FAIL(plan.error().message);
  auto run = run_plan(model, *plan);
  if (!run) FAIL(run.error().message);
  const ModelIndex result = run->model.index();
  std::map<std::string, std::vector<uint8_t>> out;
  for (const ModelTensor& tensor : result.tensors()) {
    const std::vector<uint8_t>& file = run->model.files[tensor.file];
    out[tensor.stored.name].assign(file.begin() + static_cast<ptrdiff_t>(tensor.stored.begin),
                                   file.begin() + static_cast<ptrdiff_t>(tensor.stored.end));
  }
  return out;
}

std::vector<float> floats_of(const std::vector<uint8_t>& bytes) {
  std::vector<float> out(bytes.size() / 4);
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

}  // namespace

TEST_CASE("a format that stores experts one by one writes the same bytes from every arrangement") {
  for (const StorageDtype dtype : {StorageDtype::F32, StorageDtype::BF16}) {
    const Layouts layouts = make_layouts(dtype);
    const struct {
      const char *preset, *format;
    } cases[] = {{"int8", "quark"},           {"int4_wo_32", "quark"}, {"fp8", "quark"},
                 {"uint4_wo_32", "awq"},      {"int4_wo_32", "gptq"},  {"mxfp4", "quark"},
                 {"fp8_per_channel", "quark"}};
    for (const auto& c : cases) {
      CAPTURE(c.preset);
      CAPTURE(c.format);
      const auto expected = expert_plan_written(layouts.single, c.preset, c.format);
      CHECK(expected.size() > 9);
      for (const uint64_t tile_bytes : {uint64_t{1} << 20, uint64_t{2048}}) {
        CHECK(expert_plan_written(layouts.output_major, c.preset, c.format, tile_bytes) == expected);
        CHECK(expert_plan_written(layouts.input_major, c.preset, c.format, tile_bytes) == expected);
      }
    }
  }
}

TEST_CASE("simulated values of experts in one tensor are those of single experts") {
  const Layouts layouts = make_layouts(StorageDtype::F32);
  for (const char* preset : {"int8", "int4_wo_32", "uint4_wo_32", "mxfp4", "fp8_per_channel"}) {
    CAPTURE(preset);
    const auto single = expert_plan_written(layouts.single, preset, "fake-quantized");
    const auto rows = expert_plan_written(layouts.output_major, preset, "fake-quantized");
    const auto columns = expert_plan_written(layouts.input_major, preset, "fake-quantized", 4096);
    REQUIRE(rows.size() == 2);
    std::vector<float> up, down, up_columns, down_columns;
    for (uint64_t e = 0; e < kExpertCount; ++e) {
      const std::string layer = std::string(kParent) + "." + std::to_string(e);
      std::vector<float> both = floats_of(single.at(layer + ".gate_proj.weight"));
      append(both, floats_of(single.at(layer + ".up_proj.weight")));
      const std::vector<float> out = floats_of(single.at(layer + ".down_proj.weight"));
      append(up, both);
      append(down, out);
      append(up_columns, transposed(both, 2 * kInner, kIn));
      append(down_columns, transposed(out, kIn, kInner));
    }
    CHECK(floats_of(rows.at(std::string(kParent) + ".gate_up_proj")) == up);
    CHECK(floats_of(rows.at(std::string(kParent) + ".down_proj")) == down);
    CHECK(floats_of(columns.at(std::string(kParent) + ".gate_up_proj")) == up_columns);
    CHECK(floats_of(columns.at(std::string(kParent) + ".down_proj")) == down_columns);
  }
}

TEST_CASE("experts that a rule leaves are stored as plain values, named like the others") {
  const Layouts layouts = make_layouts(StorageDtype::BF16);
  constexpr const char* kConfig = R"({"global_quant_config": {"weight": {"dtype": "int8", "qscheme": "per_channel",
    "ch_axis": 0}}, "exclude": ["*.experts.1.*"]})";
  const auto expected = expert_plan_written(layouts.single, kConfig, "quark");
  CHECK(expert_plan_written(layouts.output_major, kConfig, "quark") == expected);
  CHECK(expert_plan_written(layouts.input_major, kConfig, "quark") == expected);
}

TEST_CASE("doubles that a rule leaves and the format rearranges are written as F32") {
  const Layouts doubles = make_layouts(StorageDtype::F64), floats = make_layouts(StorageDtype::F32);
  constexpr const char* kConfig = R"({"global_quant_config": {"weight": {"dtype": "int8", "qscheme": "per_channel",
    "ch_axis": 0}}, "exclude": ["*.experts.1.*"]})";
  CHECK(expert_plan_written(doubles.input_major, kConfig, "quark") ==
        expert_plan_written(floats.single, kConfig, "quark"));
}

namespace {

// A mixture with a router and an attention layer, and what config.json says about it.
ModelIndex mixture_index(const MemoryModel& experts, const char* config_json) {
  MemoryModel model = experts;
  model.add_file("other.safetensors",
                 {{"model.layers.0.mlp.gate.weight", StorageDtype::F32, {kExpertCount, kIn}, normal_values(192, 7)},
                  {"model.layers.0.self_attn.q_proj.weight", StorageDtype::F32, {8, kIn}, normal_values(512, 8)}});
  ModelIndex index = model.index();
  index.set_sibling_file("config.json", config_json);
  return index;
}

constexpr const char* kMerged = R"({"model_type": "qwen2_moe"})";

// The number of quantized tensors, or what the error says.
std::string quantized_of(const ModelIndex& index, std::string_view config, ExpertChoice experts = {},
                         List<Diagnostic>* remarks = nullptr, json::Value* block = nullptr,
                         const char* format = "compressed-tensors") {
  List<Diagnostic> diagnostics;
  PlanOptions options;
  options.format = format;
  options.experts = experts;
  auto plan = make_plan(index, config, options, diagnostics);
  if (remarks != nullptr) *remarks = diagnostics;
  if (!plan) return plan.error().where + ": " + plan.error().message;
  if (block != nullptr) *block = plan->quantization_config;
  return std::to_string(plan->quantized_count);
}

bool has_code(const List<Diagnostic>& diagnostics, std::string_view code) {
  return std::any_of(diagnostics.begin(), diagnostics.end(), [&](const Diagnostic& d) { return d.code == code; });
}

const std::string kAll = std::to_string(1 + 3 * kExpertCount);

}  // namespace

TEST_CASE("experts that transformers cannot read one by one are left, and the plan says so first") {
  const Layouts layouts = make_layouts(StorageDtype::F32);
  const ModelIndex index = mixture_index(layouts.output_major, R"({"model_type": "granitemoe"})");
  List<Diagnostic> diagnostics;
  auto plan = make_plan(index, "int8", {}, diagnostics);
  REQUIRE(bool(plan));
  CHECK(plan->quantized_count == 1);
  REQUIRE(!diagnostics.empty());
  CHECK(diagnostics[0].code == "low-coverage");
  const Coverage coverage = coverage_of(*plan, index);
  CHECK(coverage.quantized_parameters == 512);
  CHECK(coverage.parameters == 3 * 3 * kIn * kInner + 192 + 512);
  REQUIRE(coverage.left.size() == 2);
  CHECK(coverage.left[0].parameters == 3 * 3 * kIn * kInner);
  CHECK(coverage.left[0].rule == "default-exclusion");
  CHECK(json::write(plan->quantization_config["ignore"]) == R"(["re:(.*\\.)?experts\\..*","model.layers.0.mlp.gate"])");
  CHECK(plan->quantization_config["config_groups"].members().size() == 1);
  const std::string refused = quantized_of(index, "int8", ExpertChoice::include);
  CHECK(refused.find("granitemoe") != std::string::npos);
  CHECK(refused.find("--include-experts") != std::string::npos);
}

TEST_CASE("experts that transformers fills with random values are left by default, in quark, awq and gptq, too") {
  const Layouts layouts = make_layouts(StorageDtype::F32);
  const struct {
    const char *preset, *format;
    bool is_refused;  // nothing reads them
  } cases[] = {{"int8", "quark", false}, {"int4_wo_32", "gptq", true}, {"uint4_wo_32", "awq", true}};
  for (const auto& c : cases)
    for (const char* type : {"granitemoe", "gpt_oss", "llama4_text"}) {
      CAPTURE(c.format);
      CAPTURE(type);
      const ModelIndex index = mixture_index(layouts.output_major, text_of(R"({"model_type": {q}})", type).c_str());
      List<Diagnostic> remarks;
      CHECK(quantized_of(index, c.preset, {}, &remarks, nullptr, c.format) == "1");
      REQUIRE(!remarks.empty());
      CHECK(remarks[0].code == "low-coverage");
      CHECK(remarks[0].hint.empty() == c.is_refused);
      const std::string included = quantized_of(index, c.preset, ExpertChoice::include, &remarks, nullptr, c.format);
      CHECK((included.find(":") != included.npos) == c.is_refused);
      if (!c.is_refused && type != std::string_view("gpt_oss")) CHECK(included == kAll);
      CHECK(has_code(remarks, "loader-limit") != c.is_refused);
    }
  // Single experts of a class that has single layers, and a rule that names them.
  constexpr const char* kSingle = R"({"model_type": "granitemoe"})";
  CHECK(quantized_of(mixture_index(layouts.single, kSingle), "int8", {}, nullptr, nullptr, "quark") == kAll);
  List<Diagnostic> remarks;
  CHECK(
      quantized_of(mixture_index(layouts.output_major, kSingle),
                   R"({"global_quant_config": {"weight": {"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0}}})",
                   {}, &remarks, nullptr, "quark") != "1");
  CHECK(has_code(remarks, "loader-limit"));
}

TEST_CASE("experts that nothing quantizes keep the arrangement that the loader reads") {
  const Layouts layouts = make_layouts(StorageDtype::F32);
  const auto first_of = [&](const char* type, const char* format, ExpertChoice experts, const char* exclude) {
    List<Diagnostic> remarks;
    PlanOptions options;
    options.format = format;
    options.experts = experts;
    const std::string config = text_of(
        R"({"global_quant_config": {"weight": {"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0}}, "exclude": [{q}]})",
        exclude);
    const ModelIndex index = mixture_index(layouts.output_major, text_of(R"({"model_type": {q}})", type).c_str());
    auto plan = make_plan(index, config, options, remarks);
    REQUIRE(bool(plan));
    CHECK_FALSE(has_code(remarks, "loader-limit"));
    return plan->tensors[0].weight.layer;
  };
  const std::string single = std::string(kParent) + ".0.gate_proj";
  for (const char* format : {"quark", "compressed-tensors"})
    for (const char* type : {"granitemoe", "qwen2_moe", "llama4_text"}) {
      CAPTURE(format);
      CAPTURE(type);
      // transformers builds single experts of Llama 4 for every compressed-tensors file.
      const bool is_single =
          type == std::string_view("llama4_text") && format == std::string_view("compressed-tensors");
      CHECK((first_of(type, format, ExpertChoice::exclude, "none") == single) == is_single);
      CHECK((first_of(type, format, {}, "*experts*") == single) == is_single);
    }
}

TEST_CASE("a source with single experts gets a warning if its class has one parameter for all") {
  const Layouts layouts = make_layouts(StorageDtype::F32);
  const struct {
    const char *type, *format;
    bool is_warned;
  } cases[] = {{"gpt_oss", "fake-quantized", true},
               {"gpt_oss", "quark", true},
               {"llama4_text", "fake-quantized", true},
               {"llama4_text", "compressed-tensors", false},
               {"qwen2_moe", "fake-quantized", false},
               {"qwen2_moe", "compressed-tensors", false},
               {"switch_transformers", "fake-quantized", false}};
  for (const auto& c : cases) {
    CAPTURE(c.type);
    CAPTURE(c.format);
    const ModelIndex index = mixture_index(layouts.single, text_of(R"({"model_type": {q}})", c.type).c_str());
    List<Diagnostic> remarks;
    quantized_of(index, "int8", {}, &remarks, nullptr, c.format);
    CHECK(has_code(remarks, "loader-limit") == c.is_warned);
  }
}

TEST_CASE("experts in the rows of one matrix are left with that reason, and are not to be included") {
  MemoryModel rows;
  const std::vector<float> values = normal_values(kExpertCount * kInner * kIn, 1);
  std::vector<Tensor> tensors;
  for (const char* name : {"w1", "v1", "w2"})
    tensors.push_back({"transformer.blocks.0.ffn.experts.mlp." + std::string(name),
                       StorageDtype::F32,
                       {kExpertCount * kInner, kIn},
                       values});
  rows.add_file("model.safetensors", tensors);
  const ModelIndex index = mixture_index(rows, R"({"model_type": "dbrx"})");
  List<Diagnostic> diagnostics;
  auto plan = make_plan(index, "int8", {}, diagnostics);
  REQUIRE(bool(plan));
  REQUIRE(!diagnostics.empty());
  CHECK(diagnostics[0].code == "low-coverage");
  CHECK(diagnostics[0].message.find("these experts are rows of one matrix") != std::string::npos);
  const std::string refused = quantized_of(index, "int8", ExpertChoice::include);
  CHECK(refused.find("dbrx") != std::string::npos);
  CHECK(refused.find("Remove --include-experts") != std::string::npos);
}

TEST_CASE("experts that transformers merges are quantized by default, under the names that it reads") {
  for (const StorageDtype dtype : {StorageDtype::F32, StorageDtype::BF16}) {
    const Layouts layouts = make_layouts(dtype);
    for (const MemoryModel* experts : {&layouts.single, &layouts.output_major, &layouts.input_major})
      for (const char* preset : {"int8", "int4_wo_32", "fp8_per_channel", "fp8", "mxfp4"}) {
        CAPTURE(preset);
        CHECK(quantized_of(mixture_index(*experts, kMerged), preset) == kAll);
      }
  }
  const Layouts layouts = make_layouts(StorageDtype::F32);
  const ModelIndex mixtral = mixture_index(layouts.output_major, R"({"model_type": "mixtral"})");
  List<Diagnostic> none;
  auto plan = make_plan(mixtral, "int8", {}, none);
  REQUIRE(bool(plan));
  CHECK(plan->tensors[0].weight.layer == "model.layers.0.mlp.experts.0.w1");
  CHECK(plan->tensors[1].weight.layer == "model.layers.0.mlp.experts.0.w3");
  CHECK(has_code(none, "loader-version"));
}

TEST_CASE("experts of layouts that transformers cannot decompress are left, and included with a warning") {
  const Layouts layouts = make_layouts(StorageDtype::F32);
  for (const MemoryModel* experts : {&layouts.single, &layouts.output_major})
    for (const char* preset : {"int8_dynamic", "int8_per_tensor", "uint4_wo_32", "nvfp4", "mxfp8"}) {
      CAPTURE(preset);
      const ModelIndex index = mixture_index(*experts, kMerged);
      List<Diagnostic> remarks;
      CHECK(quantized_of(index, preset, {}, &remarks) == "1");
      REQUIRE(!remarks.empty());
      CHECK(remarks[0].code == "low-coverage");
      CHECK_FALSE(has_code(remarks, "loader-limit"));
      CHECK(quantized_of(index, preset, ExpertChoice::include, &remarks) == kAll);
      CHECK(has_code(remarks, "loader-limit"));
    }
}

TEST_CASE("single experts that are left get an fp8 group, so that the loader skips them") {
  const Layouts layouts = make_layouts(StorageDtype::F32);
  const auto groups_of = [&](const char* preset, ExpertChoice experts, const char* config_json = kMerged) {
    json::Value block;
    const std::string count =
        quantized_of(mixture_index(layouts.single, config_json), preset, experts, nullptr, &block);
    CAPTURE(count);
    return block["config_groups"];
  };
  const json::Value groups = groups_of("int8", ExpertChoice::exclude);
  REQUIRE(groups.members().size() == 2);
  CHECK(json::write(groups["group_1"]["targets"]) == R"(["re:(.*\\.)?experts\\.\\d+\\..*"])");
  CHECK(groups["group_1"]["weights"]["type"].as_string() == "float");
  CHECK(groups_of("fp8_per_channel", ExpertChoice::exclude).members().size() == 1);
  CHECK(groups_of("int8", ExpertChoice::by_default).members().size() == 1);
  CHECK(groups_of("int8", ExpertChoice::exclude, R"({"model_type": "other"})").members().size() == 1);
}

TEST_CASE("awq and gptq name the module of experts none of which is quantized, as vLLM looks for it") {
  const Layouts layouts = make_layouts(StorageDtype::F32);
  const ModelIndex index = mixture_index(layouts.single, kMerged);
  const auto block_of = [&](const char* format, const std::string& config, ExpertChoice experts) {
    List<Diagnostic> diagnostics;
    PlanOptions options;
    options.format = format;
    options.experts = experts;
    auto plan = make_plan(index, config, options, diagnostics);
    REQUIRE(bool(plan));
    return plan->quantization_config;
  };
  const json::Value awq = block_of("awq", "uint4_wo_32", ExpertChoice::exclude);
  CHECK(json::write(awq["modules_to_not_convert"]) == R"(["model.layers.0.mlp.experts","model.layers.0.mlp.gate"])");
  const json::Value gptq = block_of("gptq", "int4_wo_32", ExpertChoice::exclude);
  CHECK(json::write(gptq["dynamic"]) ==
        R"({"-:^model\\.layers\\.0\\.mlp\\.experts(\\..*)?$":{},"-:^model\\.layers\\.0\\.mlp\\.gate$":{}})");
  const std::string partly = R"({"global_quant_config": {"weight": {"dtype": "uint4", "qscheme": "per_group",
    "group_size": 32, "ch_axis": -1, "symmetric": false}}, "exclude": ["*.experts.1.*", "*.gate"]})";
  CHECK(json::write(block_of("awq", partly, ExpertChoice::by_default)["modules_to_not_convert"])
            .find("experts.1.up_proj") != std::string::npos);
}

TEST_CASE("experts that are partly left or differ are refused for a preset and a warning for a config") {
  const Layouts layouts = make_layouts(StorageDtype::F32);
  const ModelIndex index = mixture_index(layouts.single, kMerged);
  const std::string int8 = R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})",
                    int4 = R"({"dtype": "int4", "qscheme": "per_group", "group_size": 32, "ch_axis": -1})";
  const std::string config = R"({"global_quant_config": {"weight": )" + int8 + "}",
                    rest = R"(, "default_exclusions": true})";
  const std::string partly = config + R"(, "exclude": ["*.experts.1.*"])",
                    mixed = config + R"(, "layer_quant_config": {"*.experts.1.*": {"weight": )" + int4 + "}}";
  for (const std::string& each : {partly, mixed}) {
    const std::string refused = quantized_of(index, each + rest);
    CHECK(refused.find("transformers") != std::string::npos);
    CHECK(refused.find("--exclude-experts") != std::string::npos);
    List<Diagnostic> remarks;
    quantized_of(index, each + "}", {}, &remarks);
    CHECK(has_code(remarks, "loader-limit"));
  }
  // fp8 beside plain weights passes.
  CHECK(quantized_of(index, R"({"global_quant_config": {"weight": {"dtype": "fp8_e4m3", "qscheme": "per_channel",
    "ch_axis": 0}}, "exclude": ["*.experts.1.*"])" +
                                rest) == std::to_string(1 + 3 * (kExpertCount - 1)));
}

TEST_CASE("a family whose layers the loader splits is refused unless they are bytes with a scale per row") {
  MemoryModel model;
  model.add_file(
      "model.safetensors",
      {{"encoder.layer.0.mlp.weights_in.weight", StorageDtype::F32, {64, kIn}, normal_values(64 * kIn, 1)},
       {"encoder.layer.0.mlp.weights_out.weight", StorageDtype::F32, {kIn, 32}, normal_values(kIn * 32, 2)}});
  ModelIndex index = model.index();
  index.set_sibling_file("config.json", R"({"model_type": "depth", "backbone_config": {"model_type": "dinov2"}})");
  CHECK(quantized_of(index, "int8") == "2");
  CHECK(quantized_of(index, "fp8_per_channel") == "2");
  for (const char* preset : {"int4_wo_32", "fp8", "mxfp4"})
    CHECK(quantized_of(index, preset).find("transformers splits mlp.weights_in") != std::string::npos);
}
