// Rotations of whole models: what they compute stays as it was, and quantizing them loses less.
#include <cmath>
#include <random>

#include "calibration/calibrated_model.h"

using namespace wasmquant;
using namespace wasmquant::testing;

namespace {

const std::string kRotationInt8 = R"({"dtype": "int8", "qscheme": "per_channel", "ch_axis": 0})";

// Nothing is quantized unless `exclude` is said.
std::string rotation_config_of(const std::string& options, const std::string& rest = "",
                               const std::string& exclude = R"("*")") {
  return R"({"global_quant_config": {"weight": )" + kRotationInt8 + R"(}, "exclude": [)" + exclude +
         R"(], "pre_quant_opt_config": [{"name": "rotation", "scaling_layers":
    {"first_layer": [], "middle_layers": [], "last_layer": []}, )" +
         options + "}]" + rest + "}";
}

std::vector<int32_t> random_tokens(size_t count) {
  std::vector<int32_t> out(count);
  std::mt19937 random(7);
  for (int32_t& token : out) token = static_cast<int32_t>(random() % 32);
  return out;
}

TEST_CASE("rotation: R1 and R2 do not change the float model's outputs") {
  const std::vector<int32_t> tokens = random_tokens(24);
  const struct {
    const char *family, *options;
  } cases[] = {
      {"llama_linear", R"("r2": true)"},
      {"llama_linear", R"("random_r1": true, "random_r2": true, "r2": true, "seed": 3)"},
      {"mistral", R"("r1": true)"},
      {"mistral", R"("rotation_size": 4)"},
      {"qwen2", R"("r1": true)"},               // biases of q, k and v
      {"qwen3", R"("r2": true)"},               // norms per head, a bias of o
      {"gemma", R"("r1": false, "r2": true)"},  // norms that add one
      {"gemma3_text", R"("r1": false, "r2": true)"},
      {"gemma", R"("r1": true)"},  // a head that is the embedding
      {"mistral", R"("r1": true, "r4": true)"},
      {"qwen2", R"("r1": false, "r4": true)"},
  };
  for (const auto& [family, options] : cases) {
    CAPTURE(family);
    CAPTURE(options);
    const ModelFolder model(std::string("files/forward/") + family);
    const double before = loss_with(model, {}, tokens, 12);
    const CalibratedModel found = calibrate(model, rotation_config_of(options), tokens, 12, false, "fake-quantized");
    REQUIRE_MESSAGE(found.blocks.size() == 3, found.error.where, ": ", found.error.message);
    CHECK(std::fabs(loss_with(model, found, tokens, 12) - before) < 1e-5 * std::fabs(before));
    const bool rotates_stream = std::string(options).find("\"r1\": false") == std::string::npos;
    CHECK(found.tables.size() == (rotates_stream ? 3 : 0));
    CHECK(found.rotated_down_input == (std::string(options).find("r4") != std::string::npos));
    if (!rotates_stream || found.tables.size() != 3) continue;
    const float cleared = std::string(family) == "gemma" ? 0 : 1;
    for (const float value : found.tables.at("model.norm.weight")) CHECK(value == cleared);
    for (const float value : found.blocks[1][model::Slot::feed_forward_norm]) CHECK(value == cleared);
    CHECK(found.tables.contains("lm_head.weight"));
    CHECK(found.tables.at("model.embed_tokens.weight") != model.tensor<float>("model.embed_tokens.weight"));
  }
}

TEST_CASE("rotation: works with the algorithms after it, and with a quantized head") {
  const ModelFolder model("files/forward/llama_linear");
  const std::vector<int32_t> tokens = random_tokens(24);
  const auto config_with = [](const std::string& more) {
    return rotation_config_of(R"("r2": true)",
                              R"(, "algo_config": [{"name": "gptq"}], "layer_quant_config": {"lm_head": {"weight": )" +
                                  kRotationInt8 + "}" + more + "}",
                              "");
  };
  // Quark's files hold no quantized embedding.
  std::string config = config_with(R"(, "model.embed_tokens": {"weight": )" + kRotationInt8 + "}");
  const double before = loss_with(model, {}, tokens, 12);
  for (const auto& [format, asked] : {std::pair("fake-quantized", config), std::pair("quark", config_with(""))}) {
    const CalibratedModel found = calibrate(model, asked, tokens, 12, false, format);
    REQUIRE_MESSAGE(found.blocks.size() == 3, found.error.where, ": ", found.error.message);
    CHECK_MESSAGE(found.error.message.empty(), found.error.message);
    CHECK(std::fabs(loss_with(model, found, tokens, 12) - before) < 0.02 * std::fabs(before));
  }
  // Scales of the whole tensor are not known before its last row.
  config.replace(config.rfind("per_channel"), 11, "per_tensor");
  const CalibratedModel found = calibrate(model, config, tokens, 12, false, "fake-quantized");
  CHECK(found.error.code == ErrorCode::format_unsupported);
}

TEST_CASE("rotation: what cannot be done is refused") {
  const std::vector<int32_t> tokens = random_tokens(24);
  const struct {
    const char *family, *options, *where;
    ErrorCode code;
  } cases[] = {
      {"mistral", R"("r3": true)", "/r3", ErrorCode::not_implemented},
      {"mistral", R"("online_r1_rotation": true)", "/online_r1_rotation", ErrorCode::not_implemented},
      {"mistral", R"("trainable": true)", "/trainable", ErrorCode::not_implemented},
      {"mistral", R"("rotation_size": 5)", "/rotation_size", ErrorCode::config_invalid},
      {"mistral", R"("rotation_size": 6)", "/r1", ErrorCode::not_implemented},
      {"mistral", R"("rotation_size": 0)", "/rotation_size", ErrorCode::config_invalid},
      {"gemma2", R"("r1": true)", "/r1", ErrorCode::not_implemented},
      {"llama", R"("r1": false, "r2": true)", "/r2", ErrorCode::not_implemented},  // heads of 6
      {"t5_decoder", R"("r2": true)", "", ErrorCode::not_implemented},
  };
  for (const auto& [family, options, where, code] : cases) {
    CAPTURE(family);
    CAPTURE(options);
    const ModelFolder model(std::string("files/forward/") + family);
    const CalibratedModel found = calibrate(model, rotation_config_of(options), tokens, 12);
    CHECK(found.blocks.empty());
    CHECK(found.error.code == code);
    CHECK(found.error.where == std::string("/pre_quant_opt_config/0") + where);
  }
}

}  // namespace
