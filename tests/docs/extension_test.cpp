// What the guide "Add a dtype ..." adds is there and works: compiled in a copy of the tree that has its snippets
// (extension.mjs), beside the tests that go through all rows of the tables.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "calibration/calibrated_model.h"
#include "config/presets.h"
#include "config/schema.h"
#include "gguf_conversion/architectures/family.h"
#include "numeric/minifloat.h"
#include "observers/registry.h"
#include "pipeline/plan/output_format.h"
#include "runtimes/runtime.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

const std::string kAsymmetric = R"({"dtype": "uint8", "qscheme": "per_channel", "ch_axis": 0, "symmetric": false)";
const std::string kInt8 = R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0)";

std::string config_of(const std::string& weight, const std::string& rest = "") {
  return R"({"global_quant_config": {"weight": )" + weight + R"(}, "exclude": ["lm_head"])" + rest + "}";
}

Config parsed(const std::string& text) {
  List<Diagnostic> diagnostics;
  auto result = config::parse_text(text, "auto", &diagnostics);
  REQUIRE(bool(result));
  CHECK(diagnostics.empty());
  return std::move(result->config);
}

bool schema_says(const std::string& word) {
  return json::write(config::schema(Dialect::quark)).find('"' + word + '"') != std::string::npos;
}

// A model of three blocks.
CalibratedModel run(const std::string& config, const std::string& format, bool float_only = false) {
  const ModelFolder model("files/forward/llama");
  std::vector<int32_t> tokens(48);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * i * 7 % 32);
  CalibratedModel found = calibrate(model, config, tokens, 16, float_only, format);
  REQUIRE_MESSAGE(found.blocks.size() == 3, found.error.where, ": ", found.error.message);
  return found;
}

}  // namespace

TEST_CASE("the preset of the guide") {
  const config::Preset* const preset = config::preset_named("int8_wo_128");
  REQUIRE(preset != nullptr);
  const Config config = parsed(preset->config_text());
  CHECK(config.global.weight.front().dtype == Dtype::int8);
  CHECK(config.global.weight.front().group_size == 128);
}

TEST_CASE("the dtype of the guide") {
  const auto dtype = dtype_named("fp8_e3m4");
  REQUIRE(dtype.has_value());
  CHECK(info_of(*dtype).bits == 8);
  CHECK(float_format_of(*dtype).exponent_bits == 3);
  CHECK(float_format_of(*dtype).mantissa_bits == 4);
  CHECK(schema_says("fp8_e3m4"));
  const std::string config = config_of(R"({"dtype": "fp8_e3m4", "qscheme": "per_channel", "ch_axis": 0})");
  CHECK(parsed(config).global.weight.front().dtype == *dtype);
  CHECK(run(config, "fake-quantized").weight_noise > 0);
}

TEST_CASE("the observer of the guide") {
  const char* const name = "PerChannelShrunkRangeObserver";
  CHECK(schema_says(name));
  const std::string config = config_of(kInt8 + R"(, "symmetric": true, "observer_cls": ")" + name + "\"}");
  const QuantizationSpec spec = parsed(config).global.weight.front();
  CHECK(info_of(spec.observer).name == name);
  const float x[] = {-10, 5, 1, 100};
  const auto found = observe_tensor(spec, x, {2, 2});
  REQUIRE(bool(found));
  CHECK(found->min == std::vector<float>{-9, 0.9f});
  CHECK(found->max == std::vector<float>{4.5f, 90});
  CHECK(found->qparams[1].scale == doctest::Approx(2 * 90 / 255.0));
  const std::string with_zero_points = config_of(kAsymmetric + R"(, "observer_cls": ")" + name + "\"}");
  const auto asymmetric = observe_tensor(parsed(with_zero_points).global.weight.front(), x, {2, 2});
  REQUIRE(bool(asymmetric));
  CHECK(asymmetric->qparams[0].scale == doctest::Approx(13.5 / 255));
  CHECK(asymmetric->qparams[0].zero_point == 170);
  CHECK(asymmetric->qparams[1].zero_point == 0);
  CHECK(run(with_zero_points, "compressed-tensors").weight_noise >
        run(config_of(kAsymmetric + "}"), "compressed-tensors").weight_noise);
  const CalibratedModel shrunk = run(config, "compressed-tensors");
  CHECK(shrunk.weight_noise > run(config_of(kInt8 + "}"), "compressed-tensors").weight_noise);
}

TEST_CASE("the algorithm of the guide") {
  const std::string weight = kAsymmetric + "}";
  const auto with = [&](const char* algorithms) {
    return config_of(weight, std::string(R"(, "algo_config": [)") + algorithms + "]");
  };
  const auto listed = calibrated_algorithms(parsed(with(R"({"name": "meansmooth", "alpha": 0.5}, {"name": "gptq"})")));
  REQUIRE(listed.size() == 2);
  CHECK(listed[0].name == "meansmooth");
  CHECK((listed[0].needs_inputs && listed[0].changes_inputs && !listed[0].needs_reference));
  const std::string config = with(R"({"name": "meansmooth", "alpha": 0.5})");
  CHECK(run(config, "compressed-tensors").weight_noise > 0);
  // Scaled weights, the same function.
  const ModelFolder model("files/forward/llama");
  const std::vector<int32_t> tokens(32, 3);
  const CalibratedModel scaled = run(config, "compressed-tensors", true);
  CHECK(scaled.blocks[0][model::Slot::q] != model.tensor<float>("model.layers.0.self_attn.q_proj.weight"));
  const double before = loss_with(model, {}, tokens, 16);
  CHECK(loss_with(model, scaled, tokens, 16) == doctest::Approx(before).epsilon(1e-4));

  List<Diagnostic> diagnostics;
  (void)config::parse_text(with(R"({"name": "meansmooth", "alhpa": 1})"), "auto", &diagnostics);
  REQUIRE(diagnostics.size() == 1);
  CHECK(diagnostics[0].code == "key-unknown");
}

TEST_CASE("the model family of the guide") {
  ModelFolder model("files/forward/qwen3");
  const ModelFolder reference = file_of("files/forward/qwen3/expected.safetensors");
  const std::string model_type = R"("model_type": "qwen3")";
  const size_t at = model.config.find(model_type);
  REQUIRE(at != std::string::npos);
  model.config.replace(at, model_type.size(), R"("model_type": "my_llama")");
  std::vector<int32_t> tokens;
  for (const int64_t token : reference.tensor<int64_t>("input_ids")) tokens.push_back(static_cast<int32_t>(token));
  const std::vector<float> expected = reference.tensor<float>("logits");
  std::vector<float> logits;
  run_forward(model, tokens, 24, 1 << 20, model::InputPrecision::float32, nullptr, &logits);
  REQUIRE(logits.size() == expected.size());
  double largest = 0;
  for (size_t i = 0; i < logits.size(); ++i) largest = std::max(largest, std::fabs(double{logits[i]} - expected[i]));
  CHECK(largest < 1e-4);

  const auto config = json::parse(model.config);
  REQUIRE(bool(config));
  const conversion::Family* const family = conversion::family_of(*config);
  REQUIRE(family != nullptr);
  CHECK(conversion::match_tensor(*family, "model.layers.1.self_attn.q_norm.weight").name == "blk.1.attn_q_norm.weight");
}

TEST_CASE("the checkpoint format of the guide") {
  const OutputFormat* const format = output_format_named("int8-rows");
  REQUIRE(format != nullptr);
  CHECK(runtimes::text_named("int8-rows")->title == "Rows of int8");
  List<Diagnostic> diagnostics;
  PlanOptions options;
  options.format = "int8-rows";
  const ModelFolder model("files/forward/llama");
  const auto plan = make_plan(model.index, config_of(kInt8 + "}"), options, diagnostics);
  REQUIRE_MESSAGE(bool(plan), plan.error().message);
  CHECK(plan->quantization_config["quant_method"].as_string() == "int8-rows");
  size_t codes = 0;
  for (const PlannedTensor& planned : plan->tensors)
    for (const Component& component : planned.outputs()) codes += component.name_part.ends_with("weight_codes");
  CHECK(codes == plan->quantized_count);
  CHECK(run(config_of(kInt8 + "}"), "int8-rows").weight_noise ==
        run(config_of(kInt8 + "}"), "compressed-tensors").weight_noise);
  CHECK_FALSE(bool(make_plan(model.index, config_of(R"({"dtype": "int8"})"), options, diagnostics)));
}
