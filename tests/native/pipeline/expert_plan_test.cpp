// Experts that lie in one tensor, either way round, become what they become as tensors of their own.
#include <doctest/doctest.h>

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

TEST_CASE("experts that a rule leaves are plain values under the names of the others") {
  const Layouts layouts = make_layouts(StorageDtype::BF16);
  constexpr const char* kConfig = R"({"global_quant_config": {"weight": {"dtype": "int8", "qscheme": "per_channel",
    "ch_axis": 0}}, "exclude": ["*.experts.1.*"]})";
  const auto expected = expert_plan_written(layouts.single, kConfig, "quark");
  CHECK(expert_plan_written(layouts.output_major, kConfig, "quark") == expected);
  CHECK(expert_plan_written(layouts.input_major, kConfig, "quark") == expected);
}

TEST_CASE("compressed-tensors leaves experts of a preset, and the plan says so first") {
  const Layouts layouts = make_layouts(StorageDtype::F32);
  MemoryModel model = layouts.output_major;
  model.add_file("other.safetensors",
                 {{"model.layers.0.mlp.gate.weight", StorageDtype::F32, {kExpertCount, kIn}, normal_values(192, 7)},
                  {"model.layers.0.self_attn.q_proj.weight", StorageDtype::F32, {8, kIn}, normal_values(512, 8)}});
  const ModelIndex index = model.index();
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

  List<Diagnostic> none;
  PlanOptions options;
  options.experts = ExpertChoice::include;
  auto included = make_plan(index, "int8", options, none);
  REQUIRE(bool(included));
  CHECK(included->quantized_count == 1 + 3 * kExpertCount);
}
