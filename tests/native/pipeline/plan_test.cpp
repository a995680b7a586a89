// Plans: sizes, layout of the files, fallbacks, and what cannot be done.
#include "pipeline/plan/plan.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "pipeline/memory_model.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

MemoryModel small_model(uint64_t columns) {
  MemoryModel model;
  model.add_file(
      "model.safetensors",
      {{"model.embed_tokens.weight", StorageDtype::F32, {16, columns}, std::vector<float>(16 * columns, 1.0f)},
       {"model.layers.0.mlp.up_proj.weight", StorageDtype::F32, {24, columns}, std::vector<float>(24 * columns, 0.5f)},
       {"model.norm.weight", StorageDtype::F32, {columns}, std::vector<float>(columns, 1.0f)},
       {"lm_head.weight", StorageDtype::F32, {16, columns}, std::vector<float>(16 * columns, 2.0f)}});
  return model;
}

const PlannedTensor& plan_planned(const Plan& plan, const ModelIndex& index, std::string_view name) {
  return plan.tensors[index.find(name) - index.tensors().data()];
}

}  // namespace

TEST_CASE("presets keep embeddings, norms and lm_head unchanged and say why") {
  const ModelIndex index = small_model(256).index();
  List<Diagnostic> diagnostics;
  auto plan = make_plan(index, "int4_wo_128", {}, diagnostics);
  REQUIRE(bool(plan));
  CHECK(plan_planned(*plan, index, "model.embed_tokens.weight").task.is_copy);
  CHECK(plan_planned(*plan, index, "model.norm.weight").task.is_copy);
  CHECK(plan_planned(*plan, index, "lm_head.weight").reason->rule == Rule::excluded);
  const PlannedTensor& up = plan_planned(*plan, index, "model.layers.0.mlp.up_proj.weight");
  CHECK(up.reason->rule == Rule::global);
  CHECK(up.bytes_after == 24 * 256 / 2 + 24 * 2 * 4 + 16);
  CHECK(plan->quantized_count == 1);
  CHECK(plan->file_bytes() > plan->tensor_bytes);
}

TEST_CASE("a preset's group size falls back to the largest that fits, an explicit config is an error that names them") {
  const struct {
    uint64_t columns;
    QScheme qscheme;
    int64_t group_size;
  } rows[] = {{256, QScheme::per_group, 128},
              {192, QScheme::per_group, 64},
              {96, QScheme::per_group, 32},
              {40, QScheme::per_channel, 0}};
  for (const auto& row : rows) {
    CAPTURE(row.columns);
    const ModelIndex index = small_model(row.columns).index();
    List<Diagnostic> diagnostics;
    auto plan = make_plan(index, "int4_wo_128", {}, diagnostics);
    REQUIRE(bool(plan));
    const QuantizationSpec& spec = plan_planned(*plan, index, "model.layers.0.mlp.up_proj.weight").task.layout->spec;
    CHECK(spec.qscheme == row.qscheme);
    if (row.group_size != 0) CHECK(spec.group_size == row.group_size);
    const bool noted = std::any_of(diagnostics.begin(), diagnostics.end(),
                                   [](const Diagnostic& d) { return d.code == "group-fallback"; });
    CHECK(noted == (row.columns != 256));
  }
  const ModelIndex index = small_model(192).index();
  List<Diagnostic> diagnostics;
  auto plan = make_plan(
      index, R"({"global_quant_config": {"weight": {"dtype": "int4", "qscheme": "per_group", "group_size": 128}}})", {},
      diagnostics);
  REQUIRE(!plan);
  CHECK(plan.error().code == ErrorCode::group_size_invalid);
  CHECK(plan.error().message.find("64") != std::string::npos);
}

TEST_CASE("a config that a format cannot hold is refused before any work, with every tensor named") {
  const ModelIndex index = small_model(256).index();
  List<Diagnostic> diagnostics;
  auto plan = make_plan(index, R"({"global_quant_config": {"weight": {"dtype": "fp8_e5m2", "qscheme": "per_tensor"}}})",
                        {}, diagnostics);
  REQUIRE(!plan);
  CHECK(plan.error().code == ErrorCode::format_unsupported);
  const auto errors = std::count_if(diagnostics.begin(), diagnostics.end(),
                                    [](const Diagnostic& d) { return d.severity == Severity::error; });
  CHECK(errors == 2);
  const char* percentile =
      R"({"global_quant_config": {"weight": {"dtype": "int8", "observer_cls": "PerTensorPercentileObserver"}}})";
  CHECK(bool(make_plan(index, percentile, {}, diagnostics)));
  const char* staged =
      R"({"global_quant_config": {"weight": [{"dtype": "fp8_e4m3", "qscheme": "per_tensor"},
          {"dtype": "int4", "qscheme": "per_channel", "ch_axis": 0}]}})";
  CHECK(make_plan(index, staged, {}, diagnostics).error().code == ErrorCode::format_unsupported);
  PlanOptions gguf;
  gguf.format = "gguf";
  CHECK(make_plan(index, "int8", gguf, diagnostics).error().code == ErrorCode::format_unsupported);
  gguf.format = "onnx";  // whose graph is built from config.json, which is not there
  CHECK(make_plan(index, "int8", gguf, diagnostics).error().code == ErrorCode::config_invalid);
  gguf.format = "zip";
  CHECK(make_plan(index, "int8", gguf, diagnostics).error().code == ErrorCode::argument_invalid);
}

TEST_CASE("every byte of an output file belongs to the prefix or to exactly one tensor, aligned to its dtype") {
  const ModelIndex index = small_model(256).index();
  for (const char* format : {"compressed-tensors", "quark", "fake-quantized"}) {
    for (const char* preset : {"int4_wo_128", "int8", "fp8", "uint4_wo_32", "bfloat16"}) {
      List<Diagnostic> diagnostics;
      PlanOptions options;
      options.format = format;
      auto plan = make_plan(index, preset, options, diagnostics);
      REQUIRE(bool(plan));
      std::vector<std::pair<uint64_t, uint64_t>> spans;
      for (const PlannedTensor& tensor : plan->tensors) {
        for (size_t c = 0; c < tensor.outputs().size(); ++c) {
          const Component& component = tensor.outputs()[c];
          CHECK(tensor.task.components[c].offset % std::max<uint64_t>(info_of(component.dtype).bits / 8, 1) == 0);
          if (component.role != Role::shape) spans.emplace_back(tensor.task.components[c].offset, component.bytes);
        }
      }
      std::sort(spans.begin(), spans.end());
      uint64_t at = plan->files.front().header.bytes + plan->files.front().prefix.size();
      for (const auto& [offset, bytes] : spans) {
        CHECK(offset == at);
        at += bytes;
      }
      CHECK(at == plan->files.front().bytes);
    }
  }
}
