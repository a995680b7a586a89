// BoundConfig: a quantization config for plans and algorithms.
#include "handles/config.h"

#include "bindings/bound_model.h"

namespace wasmquant::testing {
namespace {

TEST_CASE("BoundConfig: one config serves its algorithms and every plan") {
  const BoundModel model = small_model();
  BoundConfig config(int8_config(R"(, "algo_config": [{"name": "gptq"}])"));
  List<Diagnostic> diagnostics;
  const json::Value rows = taken(config.calibrated_algorithms(diagnostics));
  REQUIRE(rows.items().size() == 1);
  CHECK(rows.items()[0]["name"].as_string() == "gptq");
  CHECK(rows.items()[0]["needsInputs"].as_bool());
  CHECK_FALSE(rows.items()[0]["rotatesStream"].as_bool());
  const config::GivenConfig::Parsed* const parsed = &config.given().parsed();
  for (const char* format : {R"({"format": "quark"})", R"({"format": "fake-quantized"})"})
    CHECK(taken(BoundPlan::make(*model.index, config, format, {}, diagnostics))
              ->to_json()["totals"]["tensors"]
              .as_integer() == 3);
  CHECK(&config.given().parsed() == parsed);
}

TEST_CASE("BoundConfig: what is wrong with it is the error of what is asked of it, with every problem") {
  const BoundModel model = small_model();
  BoundConfig config(R"({"global_quant_config": {"weight": {"dtype": "int99"}}, "exclud": []})");
  for (int turn = 0; turn < 2; ++turn) {
    List<Diagnostic> diagnostics;
    CHECK(refusal(config.calibrated_algorithms(diagnostics)).substr(0, 14) == "config-invalid");
    CHECK(diagnostics.size() == 2);
    diagnostics.clear();
    CHECK(refusal(BoundPlan::make(*model.index, config, "{}", {}, diagnostics)).substr(0, 14) == "config-invalid");
    CHECK(diagnostics.size() == 2);
  }
  BoundConfig none("no-such-preset");
  List<Diagnostic> diagnostics;
  CHECK(refusal(none.calibrated_algorithms(diagnostics)) != "");
  CHECK(diagnostics.front().code == "preset-unknown");
}

}  // namespace
}  // namespace wasmquant::testing
