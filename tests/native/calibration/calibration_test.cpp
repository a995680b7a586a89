// Calibration block by block: what each algorithm does to the weights, and which configs it refuses.
#include <cmath>
#include <cstring>
#include <random>

#include "algorithms/output_error.h"
#include "calibration/calibrated_llama.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

TEST_CASE("calibration: column rounding, bias correction and equalization on small models") {
  // 24 and 28 columns, 3 blocks: small enough for sanitizers.
  const ModelFolder model("files/forward/llama"), qwen("files/forward/qwen2");
  std::vector<int32_t> tokens(48);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * i * 7 % 32);
  const std::string int4 = R"({"dtype": "int4", "qscheme": "per_group", "group_size": 4, "ch_axis": -1})";
  const auto run = [&](const ModelFolder& of, const std::string& algorithms, const std::string& rest = "",
                       bool float_only = false, bool keeps_states = false) {
    return calibrate(of, calibration_config_of(int4, R"(, "algo_config": [)" + algorithms + "]" + rest), tokens, 16,
                     float_only, "fake-quantized", keeps_states);
  };
  for (const char* algorithms :
       {R"({"name": "gptaq"})", R"({"name": "gptaq", "desc_act": false, "static_groups": false, "block_size": 5})",
        R"({"name": "qronos"})", R"({"name": "qronos", "alpha": 1e-6, "beta": 1e4})",
        R"({"name": "gpfq", "act_order": true})",
        R"({"name": "gpfq", "inside_layer_modules": ["down_proj"], "true_sequential": false})",
        R"({"name": "awq"}, {"name": "qronos"}, {"name": "biascorrection"})", R"({"name": "biascorrection"})",
        R"({"name": "gptq"})", R"({"name": "gptq", "true_sequential": false})",
        R"({"name": "gptq", "on_worse": "nearest"})",
        R"({"name": "gptq", "inside_layer_modules": ["k_proj", "down_proj"], "static_groups": false})",
        R"({"name": "autosmoothquant", "compute_scale_loss": "MAE"}, {"name": "gptq"})",
        R"({"name": "cle"}, {"name": "smooth", "alpha": 0.5}, {"name": "awq"}, {"name": "gpfq"})"}) {
    CAPTURE(algorithms);
    const CalibratedModel found = run(model, algorithms);
    CHECK_MESSAGE(found.blocks.size() == 3, found.error.where, ": ", found.error.message);
    // Blocks that go on where a part ended them see the same values.
    const CalibratedModel resumed = run(model, algorithms, "", false, true);
    REQUIRE(resumed.blocks.size() == found.blocks.size());
    for (size_t i = 0; i < found.blocks.size(); ++i) CHECK(resumed.blocks[i].values == found.blocks[i].values);
  }
  // Layers with inputs of their own, of several sizes, which share keys and values.
  const ModelFolder gemma("files/forward/gemma4_text");
  for (const char* algorithms : {R"({"name": "gptq"})", R"({"name": "gptaq"})",
                                 R"({"name": "gptq", "inside_layer_modules": ["per_layer_projection"]})"}) {
    CAPTURE(algorithms);
    const CalibratedModel found = run(gemma, algorithms), resumed = run(gemma, algorithms, "", false, true);
    CHECK_MESSAGE(found.blocks.size() == 5, found.error.where, ": ", found.error.message);
    REQUIRE(resumed.blocks.size() == found.blocks.size());
    for (size_t i = 0; i < found.blocks.size(); ++i) CHECK(resumed.blocks[i].values == found.blocks[i].values);
  }
  // Several streams.
  const ModelFolder streams("files/forward/gemma3n_text");
  for (const char* algorithms :
       {R"({"name": "gptq"})", R"({"name": "gptaq"})", R"({"name": "awq"}, {"name": "gptq"})"}) {
    CAPTURE(algorithms);
    const CalibratedModel found = run(streams, algorithms), resumed = run(streams, algorithms, "", false, true);
    CHECK_MESSAGE(found.blocks.size() == 4, found.error.where, ": ", found.error.message);
    REQUIRE(resumed.blocks.size() == found.blocks.size());
    for (size_t i = 0; i < found.blocks.size(); ++i) CHECK(resumed.blocks[i].values == found.blocks[i].values);
  }
  const CalibratedModel nearest = run(gemma, ""), by_gptq = run(gemma, R"({"name": "gptq"})");
  CHECK(loss_with(gemma, by_gptq, tokens, 16) != loss_with(gemma, nearest, tokens, 16));
  CHECK(by_gptq.blocks[0][model::Slot::layer_out] != nearest.blocks[0][model::Slot::layer_out]);
  CHECK(by_gptq.blocks[4][model::Slot::layer_gate] != nearest.blocks[4][model::Slot::layer_gate]);
  // A block that keeps its weights still takes part in what the next ones are compared with.
  CHECK(run(model, R"({"name": "gptaq"})", R"(, "layer_quant_config": {"model.layers.1.*": {"weight": null}})")
            .blocks.size() == 3);

  // Equalization with and without biases: grouped heads, gated layers, the same function.
  for (const ModelFolder* of : {&model, &qwen})
    for (const char* options : {"", R"(, "equalize_merge_bias": false, "equalize_iterations": 3)"}) {
      const CalibratedModel found = run(*of, std::string(R"({"name": "cle")") + options + "}", "", true);
      CHECK(found.blocks.size() == 3);
      const double before = loss_with(*of, {}, tokens, 16);
      CHECK(std::fabs(loss_with(*of, found, tokens, 16) - before) < 1e-5 * std::fabs(before));
      CHECK(found.blocks[0][model::Slot::v] != of->tensor<float>("model.layers.0.self_attn.v_proj.weight"));
    }

  // Mean outputs of the first block's q_proj, whose inputs are those of the float model.
  const CalibratedModel plain = run(qwen, ""), corrected = run(qwen, R"({"name": "biascorrection"})");
  REQUIRE((plain.blocks.size() == 3 && corrected.blocks.size() == 3));
  struct Mean final : model::InputSink {
    std::vector<double> sums;
    Status accept(uint32_t layer, model::LinearInput input, std::span<const float> x, size_t columns) override {
      if (layer != 0 || input != model::LinearInput::attention) return {};
      sums.resize(columns);
      for (size_t i = 0; i < x.size(); ++i) sums[i % columns] += double{x[i]} / 48;
      return {};
    }
  } mean;
  run_forward(qwen, tokens, 16, 1 << 20, model::InputPrecision::float32, &mean);
  const std::vector<float> weight = qwen.tensor<float>("model.layers.0.self_attn.q_proj.weight");
  const std::vector<float> bias = qwen.tensor<float>("model.layers.0.self_attn.q_proj.bias");
  const auto error_of = [&](const CalibratedModel& found) {
    double worst = 0;
    for (size_t row = 0; row < bias.size(); ++row) {
      double difference = double{found.blocks[0][model::Slot::q_bias][row]} - bias[row];
      for (size_t j = 0; j < mean.sums.size(); ++j)
        difference +=
            (double{found.blocks[0][model::Slot::q][row * mean.sums.size() + j]} - weight[row * mean.sums.size() + j]) *
            mean.sums[j];
      worst = std::max(worst, std::fabs(difference));
    }
    return worst;
  };
  CHECK(corrected.blocks[0][model::Slot::q] == plain.blocks[0][model::Slot::q]);
  CHECK(error_of(plain) > 1e-4);
  CHECK(error_of(corrected) < 1e-6);
}

TEST_CASE("calibration: SmoothQuant and AWQ's scales do not change the float model's outputs") {
  const ModelFolder tiny("files/tiny-llama");
  const size_t count = is_slow_build() ? 1 : 4, length = is_slow_build() ? 24 : kLength;
  auto calib = tokens_of("calib", count), validation = tokens_of("validation", count);
  calib.resize(count * length);
  validation.resize(count * length);
  const std::string smooth = R"(, "pre_quant_opt_config": [{"name": "smooth", "alpha": 0.5}])";
  const CalibratedModel smoothed =
      calibrate(tiny, calibration_config_of(kCalibrationInt8, smooth), calib, length, true);
  REQUIRE(smoothed.blocks.size() == 4);
  CHECK(std::fabs(loss_with(tiny, smoothed, validation, length) - loss_with(tiny, {}, validation, length)) < 1e-4);
  CHECK(smoothed.blocks[0][model::Slot::v] != smoothed.blocks[1][model::Slot::v]);

  // Norms that add one, head norms, biases, grouped queries: every family's maker is divided by what its readers get.
  for (const char* family :
       {"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "gemma4_text", "gemma3n_text"}) {
    CAPTURE(family);
    const ModelFolder model(std::string("files/forward/") + family);
    const std::vector<int32_t> tokens = [&] {
      std::vector<int32_t> out(24);
      std::mt19937 random(7);
      for (int32_t& token : out) token = static_cast<int32_t>(random() % 32);
      return out;
    }();
    const double before = loss_with(model, {}, tokens, 12);
    const CalibratedModel found = calibrate(model, calibration_config_of(kCalibrationInt8, smooth), tokens, 12, true);
    REQUIRE_MESSAGE(!found.blocks.empty(), found.error.message);
    CHECK(std::fabs(loss_with(model, found, tokens, 12) - before) < 2e-5 * std::fabs(before));
  }
}

TEST_CASE("calibration: every kind of spec, and which of them GPTQ cannot do") {
  // 24 and 28 columns, 3 blocks: small enough for sanitizers.
  const ModelFolder model("files/forward/llama");
  std::vector<int32_t> tokens(32);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 7 % 32);
  const auto run = [&](const std::string& spec, const char* rest) {
    return calibrate(model, calibration_config_of(spec, rest), tokens, 16, false, "fake-quantized");
  };
  const char* gptq = R"(, "algo_config": [{"name": "gptq"}])";
  const char* awq = R"(, "algo_config": [{"name": "awq"}])";
  for (const char* spec :
       {R"({"dtype": "uint4", "qscheme": "per_group", "group_size": 4, "ch_axis": -1, "symmetric": false})",
        R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})", R"({"dtype": "int8", "qscheme": "per_tensor"})",
        R"({"dtype": "fp8_e4m3", "qscheme": "per_channel", "ch_axis": 0})",
        R"({"dtype": "fp4", "qscheme": "per_group", "group_size": 4, "ch_axis": -1, "scale_format": "e8m0"})",
        R"({"dtype": "fp4", "qscheme": "per_group", "group_size": 2, "ch_axis": -1, "scale_format": "e4m3"})"}) {
    CAPTURE(spec);
    const CalibratedModel by_gptq = run(spec, gptq), by_awq = run(spec, awq);
    CHECK_MESSAGE(by_gptq.blocks.size() == 3, by_gptq.error.where, ": ", by_gptq.error.message);
    CHECK_MESSAGE(by_awq.blocks.size() == 3, by_awq.error.where, ": ", by_awq.error.message);
  }
  const CalibratedModel casts = run(R"({"dtype": "bfloat16"})", gptq);
  CHECK(casts.blocks.size() == 3);
}

TEST_CASE("calibration: dead channels, groups of zeros, and inputs that are too large") {
  ModelFolder model("files/forward/llama_linear");
  const auto set = [&](const std::string& name, size_t first, size_t count, float value) {
    const ModelTensor* tensor = model.index.find(name);
    REQUIRE(tensor != nullptr);
    for (size_t i = first; i < first + count; ++i)
      std::memcpy(model.files[tensor->file].data() + tensor->stored.begin + i * sizeof(float), &value, sizeof(float));
  };
  std::vector<int32_t> tokens(32);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * i * 7 % 32);
  const char* all[] = {"awq", "gptq", "gptaq", "qronos", "gpfq", "autosmoothquant", "cle", "smooth"};
  const auto run = [&](const std::string& name) {
    const std::string spec = R"({"dtype": "int4", "qscheme": "per_group", "group_size": 4, "ch_axis": -1})";
    return calibrate(model, calibration_config_of(spec, ", \"algo_config\": [{\"name\": \"" + name + "\"}]"), tokens,
                     16, false, "fake-quantized");
  };
  const std::string block = "model.layers.1.";
  set(block + "input_layernorm.weight", 4, 4, 0);      // a dead group of inputs
  set(block + "self_attn.q_proj.weight", 0, 24, 0);    // a row
  set(block + "mlp.gate_proj.weight", 0, 28 * 24, 0);  // nothing comes into down_proj
  for (const char* name : all) {
    CAPTURE(name);
    const CalibratedModel found = run(name);
    REQUIRE_MESSAGE(found.blocks.size() == 3, found.error.where, ": ", found.error.message);
    for (const model::BlockValues& values : found.blocks)
      for (const std::vector<float>& tensor : values.values)
        for (const float value : tensor) REQUIRE(std::isfinite(value));
  }
  // Products of such inputs are no float32.
  set(block + "post_attention_layernorm.weight", 5, 1, 1e30f);
  for (const char* name : {"awq", "gptq", "gptaq", "qronos"}) {
    CAPTURE(name);
    const CalibratedModel found = run(name);
    CHECK(found.blocks.size() == 1);
    CHECK(found.error.where.starts_with(block));
    CHECK((found.error.code == ErrorCode::value_not_finite || found.error.code == ErrorCode::argument_invalid));
  }
}

template <class Choice>
constexpr uint32_t bit(Choice choice) {
  return 1u << static_cast<uint32_t>(choice);
}

TEST_CASE("calibration: steps of a config") {
  const ModelFolder model("files/tiny-llama");
  const auto forward = plan_forward(model.index, *json::parse(model.config, json::kPython), {1 << 20, 1 << 20});
  REQUIRE(bool(forward));
  const auto steps_of = [&](const std::string& rest) {
    const auto parsed = config::parse_text(calibration_config_of(kCalibrationInt4, rest));
    REQUIRE(bool(parsed));
    return calibration_steps(parsed->config, forward->architecture);
  };
  const auto steps =
      steps_of(R"(, "pre_quant_opt_config": {"name": "smooth"}, "algo_config": [{"name": "gptq", "damp_percent": 0.1,
    "block_size": 64, "desc_act": false, "inside_layer_modules": ["v_proj", "mlp.up_proj"]}])");
  REQUIRE(bool(steps));
  REQUIRE(steps->size() == 2);
  CHECK((*steps)[0].where == "/pre_quant_opt_config");
  CHECK((*steps)[0].smooth_quant.alpha == 1);
  CHECK((*steps)[1].where == "/algo_config/0");
  CHECK((*steps)[1].gptq.damp_percent == 0.1);
  CHECK((*steps)[1].gptq.block_size == 64);
  CHECK(!(*steps)[1].gptq.desc_act);
  CHECK((*steps)[1].layers == (bit(model::Slot::v) | bit(model::Slot::up)));
  const auto awq = steps_of(R"(, "algo_config": [{"name": "awq", "scaling_layers": [
    {"prev_op": "post_attention_layernorm", "layers": ["mlp.gate_proj", "mlp.up_proj"], "inp": "mlp.gate_proj"}]}])");
  REQUIRE(bool(awq));
  CHECK((*awq)[0].inputs == bit(model::LinearInput::feed_forward));
  for (const char* bad :
       {R"({"name": "gptq"}, {"name": "awq"})", R"({"name": "gptq"}, {"name": "gptq"})",
        R"({"name": "awq", "scaling_layers": [{"prev_op": "mlp.gate_proj", "layers": ["mlp.down_proj"]}]})",
        R"({"name": "awq", "scaling_layers": [{"prev_op": "input_layernorm", "layers": ["self_attn.q_proj"]}]})",
        R"({"name": "gptq"}, {"name": "qronos"})", R"({"name": "awq"}, {"name": "cle"})",
        R"({"name": "smooth"}, {"name": "activationequalization", "is_layerwise": false})",
        R"({"name": "biascorrection"})",  // there are no biases
        R"({"name": "gptq", "inside_layer_modules": ["fc1"]})"}) {
    CAPTURE(bad);
    const auto found = steps_of(std::string(R"(, "algo_config": [)") + bad + "]");
    REQUIRE(!found);
    CHECK(found.error().code == ErrorCode::config_invalid);
  }
}

TEST_CASE("calibration: activation equalization is SmoothQuant without clamps, into the layer before") {
  const ModelFolder model("files/tiny-llama");
  const auto forward = plan_forward(model.index, *json::parse(model.config, json::kPython), {1 << 20, 1 << 20});
  REQUIRE(bool(forward));
  const auto steps_of = [&](const char* algorithm) {
    const auto parsed = config::parse_text(
        calibration_config_of(kCalibrationInt4, std::string(R"(, "algo_config": [)") + algorithm + "]"));
    REQUIRE(bool(parsed));
    return calibration_steps(parsed->config, forward->architecture);
  };
  const auto merged = steps_of(R"({"name": "activationequalization", "is_layerwise": false})");
  REQUIRE(bool(merged));
  const SmoothQuantOptions& options = (*merged)[0].smooth_quant;
  CHECK(options.alpha == 0.5);
  CHECK(options.scale_clamp_min == 0);
  CHECK(options.negligible == 1e-9);
  const auto layerwise = steps_of(R"({"name": "activationequalization"})");
  REQUIRE(!layerwise);
  CHECK(layerwise.error().code == ErrorCode::not_implemented);
  CHECK(layerwise.error().where == "/algo_config/0/is_layerwise");
}

TEST_CASE("calibration: classes of Brevitas become the same steps") {
  model::Architecture architecture;
  architecture.family = "qwen2";
  architecture.names = model::ModelNames("q=self_attn.q_proj+");
  const auto steps_of = [&](const std::string& lists) {
    const auto parsed =
        config::parse_text(R"({"dialect": "brevitas", "global_quant_config": {"weight": {"bit_width": 4},
      "input_tensors": {}}, )" +
                           lists + "}");
    REQUIRE_MESSAGE(parsed, parsed.error().message);
    return calibration_steps(parsed->config, architecture);
  };
  const auto all = steps_of(R"("pre_quant_opt_config": [{"name": "Preprocess", "equalize_iterations": 3},
    {"name": "ActivationEqualization", "alpha": 0.25}], "algo_config": [{"name": "GPTQ", "act_order": true}, {"name": "BiasCorrection"}])");
  REQUIRE_MESSAGE(all, all.error().message);
  REQUIRE(all->size() == 4);
  CHECK((*all)[0].method == CalibrationMethod::equalization);
  CHECK((*all)[0].equalization.iterations == 3);
  CHECK((*all)[0].where == "/pre_quant_opt_config/0");
  CHECK((*all)[1].method == CalibrationMethod::smooth_quant);
  CHECK((*all)[1].smooth_quant.alpha == 0.25);
  CHECK((*all)[2].method == CalibrationMethod::gptq);
  CHECK((*all)[2].gptq.desc_act);
  CHECK((*all)[3].method == CalibrationMethod::bias_correction);
  CHECK((*all)[3].where == "/algo_config/1");
  const auto one = steps_of(R"("pre_quant_opt_config": [{"name": "Preprocess", "equalize_iterations": 0}],
    "algo_config": [{"name": "GPFQ"}])");
  REQUIRE(bool(one));
  REQUIRE(one->size() == 1);
  CHECK((*one)[0].method == CalibrationMethod::gpfq);
  CHECK_FALSE((*one)[0].gptq.desc_act);
  // The default that nobody wrote.
  const auto none = steps_of(R"("algo_config": [])");
  REQUIRE(bool(none));
  CHECK(none->empty());
}

TEST_CASE("calibration: the factor of a Hessian replaces its inputs") {
  constexpr size_t kTokens = 40, kColumns = 9, kRows = 5;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> x(kTokens * kColumns), d(kRows * kColumns), hessian(kColumns * kColumns);
  for (float& value : x) value = normal(random);
  for (float& value : d) value = normal(random);
  for (size_t t = 0; t < kTokens; ++t)
    for (size_t i = 0; i < kColumns; ++i)
      for (size_t j = 0; j < kColumns; ++j) hessian[i * kColumns + j] += x[t * kColumns + i] * x[t * kColumns + j];
  std::vector<double> expected(kRows), found(kRows);
  OutputError(x, kColumns).sum_squares({d.data() + 2, kColumns}, 2, 4, expected);
  const auto factor = OutputError::of_hessian(hessian, kColumns);
  REQUIRE(bool(factor));
  factor->sum_squares({d.data() + 2, kColumns}, 2, 4, found);
  for (size_t row = 0; row < kRows; ++row) CHECK(found[row] == doctest::Approx(expected[row]).epsilon(1e-4));
  // Fewer inputs than columns, and none at all: the diagonal gets something.
  CHECK(bool(OutputError::of_hessian(std::vector<float>(kColumns * kColumns, 1.0f), kColumns)));
  CHECK(bool(OutputError::of_hessian(std::vector<float>(kColumns * kColumns), kColumns)));
}

}  // namespace
