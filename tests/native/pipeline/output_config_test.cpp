#include "pipeline/plan_output/output_config.h"

#include <doctest/doctest.h>

#include <string>

using namespace wasmquant;

namespace {

std::string output_config_written(const Plan& plan, std::string_view original) {
  const auto text = output_config(
      plan, original, original.empty() ? Result<json::Value>(json::Value()) : json::parse(original, json::kPython));
  if (!text) FAIL(text.error().message, " at ", text.error().where);
  return *text;
}

Plan plan_with_block() {
  Plan plan;
  plan.format = "quark";
  plan.quantization_config.set("percentile", 100.0);
  return plan;
}

}  // namespace

TEST_CASE("output config: without changes the text is copied") {
  const std::string odd = "{ \"a\" :1, \"a\": Infinity ,\r\n\"b\":{}}";
  CHECK(output_config_written({}, odd) == odd);
  CHECK(output_config_written({}, "") == "");
}

TEST_CASE("output config: the block is set, replaced, or removed where the weights were decoded") {
  CHECK(output_config_written(plan_with_block(), "{\n    \"cap\": 30.0\n}\n") ==
        "{\n    \"cap\": 30.0,\n    \"quantization_config\": {\n        \"percentile\": 100.0\n    }\n}\n");
  const std::string before = "{\n  \"quantization_config\": {\"bits\": 4},\n  \"cap\": 30.0\n}";
  CHECK(output_config_written(plan_with_block(), before) ==
        "{\n  \"quantization_config\": {\n    \"percentile\": 100.0\n  },\n  \"cap\": 30.0\n}");
  CHECK(output_config_written({}, before) == "{\n  \"cap\": 30.0\n}");
  CHECK(output_config_written({}, R"({"quantization_config": null})") == R"({"quantization_config": null})");
  CHECK(output_config_written(plan_with_block(), "") ==
        "{\n  \"quantization_config\": {\n    \"percentile\": 100.0\n  }\n}\n");
}

TEST_CASE("output config: a block in text_config does not survive next to the new one, nor after decoding") {
  const std::string nested = R"({"text_config": {"cap": 30.0, "quantization_config": {"bits": 4}}, "z": 1})";
  CHECK(output_config_written({}, nested) == R"({"text_config": {"cap": 30.0}, "z": 1})");
  CHECK(output_config_written(plan_with_block(), nested) ==
        R"({"text_config": {"cap": 30.0}, "z": 1, "quantization_config": {"percentile": 100.0}})");
}

TEST_CASE("output config: changes are in text_config, too, if the model has one") {
  Plan plan;
  plan.config_changes.set("tie_word_embeddings", false);
  CHECK(output_config_written(plan, R"({"text_config": {"cap": 30.0, "tie_word_embeddings": true}, "z": NaN})") ==
        R"({"text_config": {"cap": 30.0, "tie_word_embeddings": false}, "z": NaN, "tie_word_embeddings": false})");
  CHECK(output_config_written(plan, R"({"text_config": null})") ==
        R"({"text_config": null, "tie_word_embeddings": false})");
  CHECK(output_config_written(plan, R"({"tie_word_embeddings": true, "b": 1.0})") ==
        R"({"tie_word_embeddings": false, "b": 1.0})");
}

TEST_CASE("output config: transformers.js learns of external data") {
  Plan plan;
  plan.external_data_of = "onnx/model_q4.onnx";
  CHECK(output_config_written(plan, "") == "");
  CHECK(output_config_written(plan, R"({"eps": 1e-05})") ==
        R"({"eps": 1e-05, "transformers.js_config": {"use_external_data_format": {"model_q4.onnx": 1}}})");
  CHECK(
      output_config_written(
          plan, R"({"transformers.js_config": {"dtype": "q4", "use_external_data_format": {"model.onnx": 2}}})") ==
      R"({"transformers.js_config": {"dtype": "q4", "use_external_data_format": {"model.onnx": 2, "model_q4.onnx": 1}}})");
  for (const char* const said : {"true", "1"}) {
    const std::string of_all = R"({"transformers.js_config": {"use_external_data_format": )" + std::string(said) + "}}";
    CHECK(output_config_written(plan, of_all) == of_all);
  }
  CHECK(output_config_written(plan, R"({"transformers.js_config":{"use_external_data_format":false}})") ==
        R"({"transformers.js_config":{"use_external_data_format":{"model_q4.onnx":1}}})");
  CHECK(output_config_written(plan, R"({"transformers.js_config":"?"})") ==
        R"({"transformers.js_config":{"use_external_data_format":{"model_q4.onnx":1}}})");
  plan.external_data_of.clear();
  CHECK(output_config_written(plan, R"({"eps": 1e-05})") == R"({"eps": 1e-05})");
}

TEST_CASE("output config: a text that is not JSON is refused") {
  const std::string_view text = "{\"a\": }";
  const auto refused = output_config(plan_with_block(), text, json::parse(text, json::kPython));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::json_invalid);
  CHECK(refused.error().where == "byte 6");
}
