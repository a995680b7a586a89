// BoundComparison: the weights that two models have in common.
#include "handles/comparison.h"

#include "bindings/bound_model.h"

namespace wasmquant::testing {
namespace {

TEST_CASE("BoundComparison: pairs of one name, their tasks, and what only one side has") {
  const BoundModel model = small_model();
  const BoundModel other({{"a.up_proj.weight", StorageDtype::F32, {64, 32}, std::vector<float>(64 * 32, 1.0f)},
                          {"a.down_proj.weight", StorageDtype::F32, {8, 8}, std::vector<float>(64, 1.0f)},
                          {"b.weight", StorageDtype::F32, {2, 2}, {1, 2, 3, 4}}});
  const auto compared = taken(BoundComparison::make(*model.index, *other.index, "{}"));
  const json::Value summary = compared->summary();
  CHECK(summary["pairs"].as_integer() == 1);
  std::string said;
  for (const json::Value& row : summary["diagnostics"].items())
    said += row["where"].as_string() + ": " + row["message"].as_string() + "\n";
  CHECK(said.find("a.down_proj.weight: is [64, 32] in one model") == std::string::npos);
  CHECK(said.find("is [32, 64] in one model and [8, 8] in the other") != std::string::npos);
  CHECK(said.find("b.weight") != std::string::npos);
  const json::Value rows = taken(json::parse(compared->pairs(0, 8).text));
  REQUIRE(rows["tensors"].items().size() == 1);
  CHECK(json::write(rows["bytes"]) == "[" + std::to_string(64 * 32 * 2) + "]");
  const auto work = work_of(compared->pack(0, 8));
  CHECK(taken(work->task(0)).name == "a.up_proj.weight");
  CHECK(refusal(work->task(2)) == "argument-invalid task 2: does not exist; there are 2");
  CHECK(refusal(work_of(compared->pack(1, 8))->task(0)) == "argument-invalid task 0: does not exist; there are 0");
}

TEST_CASE("BoundComparison: refuses options and models that cannot be compared") {
  const BoundModel model = small_model();
  const BoundModel broken = small_model();
  CHECK(refusal(broken.index->read_config("{")) != "");
  CHECK(refusal(BoundComparison::make(*model.index, *model.index, "{")).substr(0, 12) == "json-invalid");
  CHECK(refusal(BoundComparison::make(*broken.index, *model.index, "{}")).substr(0, 12) == "json-invalid");
  CHECK(refusal(BoundComparison::make(*model.index, *broken.index, "{}")).substr(0, 12) == "json-invalid");
  CHECK(refusal(BoundComparison::make(*onnx_index(), *model.index, "{}")) ==
        "format-unsupported model: an ONNX model can only be compared with another ONNX model");
}

}  // namespace
}  // namespace wasmquant::testing
