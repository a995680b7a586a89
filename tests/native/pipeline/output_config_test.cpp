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
  plan.onnx.file = "onnx/model_q4.onnx";
  plan.onnx.data_files = 1;
  CHECK(output_config_written(plan, "") == "");
  CHECK(output_config_written(plan, R"({"eps": 1e-05})") ==
        R"({"eps": 1e-05, "transformers.js_config": {"use_external_data_format": {"model_q4.onnx": 1}}})");
  CHECK(output_config_written(
            plan, R"({"transformers.js_config": {"dtype": "q4", "use_external_data_format": {"model.onnx": 2}}})") ==
        R"({"transformers.js_config": {"dtype": "q4", "use_external_data_format": {"model_q4.onnx": 1}}})");
  for (const char* const said : {"true", "1", "2", "false", R"({"model": 1})"}) {
    const std::string before = R"({"transformers.js_config":{"use_external_data_format":)" + std::string(said) + "}}";
    plan.onnx.data_files = 1;
    CHECK(output_config_written(plan, before) ==
          R"({"transformers.js_config":{"use_external_data_format":{"model_q4.onnx":1}}})");
    plan.onnx.data_files = 0;
    CHECK(output_config_written(plan, before) == R"({"transformers.js_config":{}})");
  }
  plan.onnx.data_files = 1;
  CHECK(output_config_written(plan, R"({"transformers.js_config":"?"})") ==
        R"({"transformers.js_config":{"use_external_data_format":{"model_q4.onnx":1}}})");
  plan.onnx.file.clear();
  CHECK(output_config_written(plan, R"({"eps": 1e-05})") == R"({"eps": 1e-05})");
}

TEST_CASE("output config: transformers.js is told of the files that are there, on every device") {
  Plan plan;
  plan.onnx.file = "onnx/decoder_q4.onnx";
  plan.onnx.cache_type = "float32";
  const auto present = [&](const char* text) { plan.onnx.present = *json::parse(text); };
  const auto block = [&](std::string_view before) {
    const std::string text = output_config_written(plan, R"({"transformers.js_config":)" + std::string(before) + "}");
    return text.substr(26, text.size() - 27);
  };
  CHECK(block(R"({"dtype":"fp16"})") == R"({"dtype":{"decoder":"q4"}})");
  CHECK(block(R"({"dtype":{"decoder":"q4","encoder":"fp32"}})") == R"({"dtype":{"decoder":"q4"}})");
  CHECK(block(R"({"kv_cache_dtype":"float16"})") == R"({"kv_cache_dtype":{"q4":"float32"}})");
  CHECK(block(R"({"device_config":{"webgpu":{"dtype":"q4f16","use_external_data_format":true,"device":"gpu"}}})") ==
        R"({"device_config":{"webgpu":{"dtype":{"decoder":"q4"},"device":"gpu"}}})");
  present(R"({"files":{"encoder_q4.onnx":2,"decoder_q4.onnx":1,"decoder_fp16.onnx":0},
             "declared":{"dtype":{"encoder":"q4","decoder":"fp16"},"kv_cache_dtype":{"fp16":"float16"}}})");
  CHECK(block(R"({"dtype":"fp16","kv_cache_dtype":"float16"})") ==
        R"({"dtype":{"encoder":"q4","decoder":"fp16"},"kv_cache_dtype":{"fp16":"float16","q4":"float32"},)"
        R"("use_external_data_format":{"encoder_q4.onnx":2}})");
  plan.onnx.cache_type = {};
  present("null");
  CHECK(block(R"({"kv_cache_dtype":"float16"})") == "{}");
}

TEST_CASE("output config: a text that is not JSON is refused") {
  const std::string_view text = "{\"a\": }";
  const auto refused = output_config(plan_with_block(), text, json::parse(text, json::kPython));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::json_invalid);
  CHECK(refused.error().where == "byte 6");
}
