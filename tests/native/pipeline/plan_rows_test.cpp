// Plans as JSON: rows that come in pieces name what they share by numbers that go on from piece to piece.
#include <doctest/doctest.h>

#include "pipeline/memory_model.h"
#include "pipeline/plan_output/plan_json.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

MemoryModel layers_and_norm() {
  const std::vector<float> values(64 * 64, 0.5f), row(64, 1.0f);
  MemoryModel model;
  model.add_file("model.safetensors", {{"model.layers.0.mlp.up_proj.weight", StorageDtype::F32, {64, 64}, values},
                                       {"model.layers.0.mlp.up_proj.scale", StorageDtype::F32, {64}, row},
                                       {"model.layers.1.mlp.up_proj.weight", StorageDtype::F32, {64, 64}, values},
                                       {"model.norm.weight", StorageDtype::F32, {64}, row}});
  return model;
}

json::Value rows_of(PlanRows& rows, size_t first, size_t last) {
  auto parsed = json::parse(rows.rows(first, last));
  REQUIRE(bool(parsed));
  return std::move(*parsed);
}

}  // namespace

TEST_CASE("specs, reasons and outputs come with the first row that names them") {
  const ModelIndex index = layers_and_norm().index();
  List<Diagnostic> diagnostics;
  const auto plan = make_plan(index, "int4_wo_32", {}, diagnostics);
  REQUIRE(bool(plan));
  PlanRows rows(*plan, index);
  json::Array all;
  for (size_t i = 0; i < plan->tensors.size(); ++i) {
    json::Value piece = rows_of(rows, i, i + 1);
    REQUIRE(piece["tensors"].items().size() == 1);
    all.push_back(piece["tensors"].items()[0]);
    if (all.back()["name"].as_string() == "model.layers.1.mlp.up_proj.weight") {
      CHECK(piece["specs"].items().empty());
      CHECK(piece["reasons"].items().empty());
      CHECK(piece["outputs"].items().empty());
    }
  }
  REQUIRE(all.size() == 4);
  const auto row = [&](std::string_view name) {
    for (const json::Value& each : all)
      if (each["name"].as_string() == name) return each;
    return json::Value();
  };
  const json::Value first = row("model.layers.0.mlp.up_proj.weight"), second = row("model.layers.1.mlp.up_proj.weight");
  CHECK(first["spec"] == second["spec"]);
  CHECK(first["reason"] == second["reason"]);
  CHECK(first["outputs"] == second["outputs"]);
  CHECK(first["layer"].is_null());
  CHECK(first["action"].as_string() == "quantize");
  const json::Value copied = row("model.layers.0.mlp.up_proj.scale");
  CHECK(copied["spec"].is_null());
  CHECK(copied["action"].as_string() == "copy");

  PlanRows again(*plan, index);
  const json::Value whole = rows_of(again, 0, 100);
  CHECK(whole["tensors"].items() == all);
  CHECK(whole["specs"].items().size() == 1);
  CHECK(whole["specs"].items()[0]["dtype"].as_string() == "int4");
  const json::Array& outputs = whole["outputs"].items();
  for (const json::Value& number : first["outputs"].items()) {
    const json::Value& output = outputs[static_cast<size_t>(number.as_integer())];
    CHECK(output["suffix"].as_string().starts_with(".weight_"));
    CHECK(output["file"].as_integer() == 0);
  }
  CHECK(rows_of(again, 4, 9)["tensors"].items().empty());
}

TEST_CASE("an output whose name does not begin with the layer's is written in its row") {
  const ModelIndex index = layers_and_norm().index();
  List<Diagnostic> diagnostics;
  auto plan = make_plan(index, "int4_wo_32", {}, diagnostics);
  REQUIRE(bool(plan));
  plan->tensors[0].task.layout.edit(
      [](WeightLayout& own) { own.components[0].set_name("blk.0.ffn_up.weight", "another layer"); });
  PlanRows rows(*plan, index);
  const json::Value piece = rows_of(rows, 0, 1);
  const json::Value& output = piece["tensors"].items()[0]["outputs"].items()[0];
  CHECK(output["name"].as_string() == "blk.0.ffn_up.weight");
  CHECK(output["suffix"].is_null());
}
