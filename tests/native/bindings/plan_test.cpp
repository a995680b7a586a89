// BoundPlan: what a run reads and writes, as JavaScript gets it.
#include "handles/plan.h"

#include "bindings/bound_model.h"
#include "formats/gguf/gguf.h"

namespace wasmquant::testing {
namespace {

const std::string kFormat = R"({"format": "compressed-tensors", "name": "small"})";

TEST_CASE("BoundPlan: rows, tasks, packed tasks and the known bytes of its file") {
  const BoundModel model = small_model();
  const auto plan = taken(plan_made(*model.index, int8_config(), kFormat));
  const json::Value document = plan->to_json();
  CHECK(document["format"].as_string() == "compressed-tensors");
  CHECK(document["totals"]["tensors"].as_integer() == 3);
  const json::Value rows = taken(json::parse(plan->tensors(0, 2).text));
  CHECK(rows["tensors"].items().size() == 2);
  CHECK(taken(json::parse(plan->tensors(2, 9).text))["tensors"].items().size() == 1);
  const json::Value tasks = taken(json::parse(plan->work(0, 9).text));
  CHECK(tasks.items().size() == 3);
  const auto all = work_of(plan->pack(0, 9)), last = work_of(plan->pack(2, 3));
  CHECK(taken(all->task(2)).name == taken(last->task(0)).name);
  CHECK(refusal(last->task(1)) == "argument-invalid task 1: does not exist; there are 1");
  CHECK(json::write(plan->constants()) == "[]");
  CHECK(plan->activation_requests() == "");
  CHECK(plan->shard_map() == "");

  const json::Value known = taken(plan->file_literals(0));
  std::string bytes;
  for (uint32_t piece = 0; static_cast<int64_t>(bytes.size()) < known["bytes"].as_integer(); ++piece) {
    const Region next = taken(plan->literal_bytes(0, piece));
    REQUIRE(next.size() > 0);
    bytes += text_at(next);
  }
  CHECK(static_cast<int64_t>(bytes.size()) == known["bytes"].as_integer());
  CHECK(bytes.find("a.up_proj.weight_scale") != std::string::npos);
  int64_t covered = 0;
  for (const json::Value& place : known["places"].items()) {
    CHECK(place.items()[1].as_integer() == covered);
    covered += place.items()[2].as_integer();
  }
  CHECK(covered == known["bytes"].as_integer());
  CHECK(refusal(plan->file_literals(1)) == "argument-invalid file: no such output file");
  CHECK(refusal(plan->literal_bytes(1, 0)) == "argument-invalid file: no such output file");
}

TEST_CASE("BoundPlan: the config of its output") {
  const BoundModel model = small_model();
  const auto plan = taken(plan_made(*model.index, int8_config(), kFormat));
  CHECK(taken(plan->output_config()).as_string().find("quant_method") != std::string::npos);
  taken(model.index->read_config(R"({"model_type": "llama"})"));
  const json::Value config = taken(json::parse(taken(plan->output_config()).as_string()));
  CHECK(config["model_type"].as_string() == "llama");
  CHECK(config["quantization_config"]["quant_method"].as_string() == "compressed-tensors");
  const BoundModel broken = small_model();
  const auto refused = taken(plan_made(*broken.index, int8_config(), kFormat));
  CHECK(refusal(broken.index->read_config("{")) != "");
  CHECK(refusal(refused->output_config()).substr(0, 12) == "json-invalid");
}

TEST_CASE("BoundPlan: refuses options and configs, with all that is wrong") {
  const BoundModel model = small_model();
  CHECK(refusal(plan_made(*model.index, int8_config(), "{")).substr(0, 12) == "json-invalid");
  CHECK(refusal(plan_made(*model.index, "{", kFormat)).substr(0, 14) == "config-invalid");
  CHECK(refusal(plan_made(*model.index, int8_config(), R"({"format": "other"})")).substr(0, 24) ==
        "argument-invalid format:");
  List<Diagnostic> diagnostics;
  BoundConfig unusable(R"({"global_quant_config": {"weight": {"dtype": "int99"}}, "what": 1})");
  const auto wrong = BoundPlan::make(*model.index, unusable, kFormat, {}, diagnostics);
  CHECK(refusal(wrong).substr(0, 14) == "config-invalid");
  CHECK(diagnostics.size() == 2);
}

TEST_CASE("BoundPlan: importance of a GGUF plan's layers, written and read again") {
  gguf::Metadata metadata;
  metadata.set_text("general.architecture", "llama");
  const gguf::NewTensor tensors[] = {{"blk.0.ffn_up.weight", GgmlType::f32, {256, 2}}};
  const auto header = taken(gguf::write_header(metadata, tensors));
  MemoryModel file;
  file.names.push_back("model.gguf");
  file.files.emplace_back(header.bytes.begin(), header.bytes.end());
  file.files[0].resize(header.file_bytes);
  const auto model = index_of(file);
  const std::string config = R"({"dialect": "gguf", "recipe": "q4_k_m"})";
  const auto plan = taken(plan_made(*model, config, R"({"format": "gguf", "calibrates": true})"));
  CHECK(refusal(plan->importance_matrix("{")).substr(0, 12) == "json-invalid");
  CHECK(refusal(plan->importance_matrix(R"({"found": []})")) ==
        "argument-invalid calibration: shows the inputs of no layer that GGUF quantizes");
  std::string squares = "1";
  for (int i = 1; i < 256; ++i) squares += ", 2";
  const std::string found =
      R"({"found": [{"layer": "blk.0.ffn_up", "role": "input", "count": 8, "squares": [)" + squares + "]}]";
  const std::string matrix = text_at(taken(plan->importance_matrix(found + "}")));
  CHECK(matrix.substr(0, 4) == "GGUF");
  CHECK(matrix.find("blk.0.ffn_up.weight") != std::string::npos);
  CHECK(text_at(taken(plan->importance_matrix(found + R"(, "dat": true})"))).substr(0, 4) != "GGUF");
  List<Diagnostic> diagnostics;
  BoundConfig given(config);
  const auto weighted = BoundPlan::make(*model, given, R"({"format": "gguf"})", {{}, region_of(matrix)}, diagnostics);
  REQUIRE_MESSAGE(weighted, refusal(weighted));
  CHECK(refusal(BoundPlan::make(*model, given, R"({"format": "gguf"})", {{}, region_of("no matrix")}, diagnostics))
            .find("imatrix") != std::string::npos);
}

TEST_CASE("BoundPlan: what it has to read from the model before it can run") {
  const auto model = onnx_index();
  const auto plan =
      taken(plan_made(*model, int8_config(), R"({"format": "onnx", "onnx": {"qdq": true}, "file": "out.onnx"})"));
  CHECK(plan->constants().is_array());
}

}  // namespace
}  // namespace wasmquant::testing
